"""A query's parts as text again, for people."""

import orjson

from ttlstore.query.check import written
from ttlstore.query.syntax import (
    Access,
    Aggregate,
    ArrayLiteral,
    ArraySubquery,
    Between,
    Binary,
    Call,
    Coalesce,
    Conditional,
    Derived,
    Each,
    Exists,
    Expression,
    Fields,
    In,
    Like,
    Literal,
    Logical,
    ObjectLiteral,
    Order,
    Parameter,
    Path,
    Query,
    ScalarSubquery,
    Single,
    Source,
    Unary,
)
from ttlstore.query.values import UNDEFINED


def expression(node: Expression) -> str:
    """An expression, with parentheses around what is made of others."""
    match node:
        case Literal(value):
            return "undefined" if value is UNDEFINED else orjson.dumps(value).decode()
        case Parameter(name):
            return f"@{name}"
        case Path():
            return written(node)
        case Access(target, key):
            return f"{_inner(target)}[{expression(key)}]"
        case Unary(operator, operand):
            return f"{operator}{' ' if operator.isalpha() else ''}{_inner(operand)}"
        case Binary(operator, left, right):
            return f"{_inner(left)} {operator} {_inner(right)}"
        case Logical(operator, operands):
            return f" {operator} ".join(map(_inner, operands))
        case Coalesce(operands):
            return " ?? ".join(map(_inner, operands))
        case Conditional(condition, then, otherwise):
            return f"{_inner(condition)} ? {_inner(then)} : {_inner(otherwise)}"
        case In(operand, choices, negated):
            return f"{_inner(operand)} {_not(negated)}IN ({_listed(choices)})"
        case Between(operand, low, high, negated):
            return f"{_inner(operand)} {_not(negated)}BETWEEN {_inner(low)} AND {_inner(high)}"
        case Like(operand, pattern, escape, negated):
            ending = "" if escape is None else f" ESCAPE {_inner(escape)}"
            return f"{_inner(operand)} {_not(negated)}LIKE {_inner(pattern)}{ending}"
        case Call(name, arguments):
            return f"{name}({_listed(arguments)})"
        case Aggregate(name, argument):
            return f"{name}({expression(argument)})"
        case ObjectLiteral(items):
            return f"{{{', '.join(f'{orjson.dumps(name).decode()}: {expression(value)}' for name, value in items)}}}"
        case ArrayLiteral(elements):
            return f"[{_listed(elements)}]"
        case Exists(query):
            return f"EXISTS({text(query)})"
        case ArraySubquery(query):
            return f"ARRAY({text(query)})"
        case ScalarSubquery(query):
            return f"({text(query)})"


def _inner(node: Expression) -> str:
    compound = isinstance(node, Unary | Binary | Logical | Coalesce | Conditional | In | Between | Like)
    return f"({expression(node)})" if compound else expression(node)


def _not(negated: bool) -> str:
    return "NOT " if negated else ""


def _listed(nodes: tuple[Expression, ...]) -> str:
    return ", ".join(map(expression, nodes))


def projection(query: Query) -> str:
    """From SELECT to before FROM, without TOP."""
    distinct = "DISTINCT " if query.distinct else ""
    match query.projection:
        case Fields(items):
            return f"SELECT {distinct}" + ", ".join(f"{expression(node)} AS {name}" for name, node in items)
        case Single(node):
            return f"SELECT {distinct}VALUE {expression(node)}"
    return f"SELECT {distinct}*"


def source(node: Source) -> str:
    """What stands after FROM or JOIN."""
    match node:
        case Derived(query, alias, True):
            return f"{alias} IN ({text(query)})"
        case Derived(query, alias):
            return f"({text(query)}) {alias}".rstrip()
        case Each(path, alias):
            return f"{alias} IN {written(path)}"
    return written(node.path) if node.path == Path(node.alias) else f"{written(node.path)} {node.alias}"


def order_by(orders: tuple[Order, ...]) -> str:
    return "ORDER BY " + ", ".join(expression(order.expression) + " DESC" * order.descending for order in orders)


def window(query: Query) -> str | None:
    """TOP, or OFFSET and LIMIT, if there is one."""
    if query.top is not None:
        return f"TOP {expression(query.top)}"
    if query.offset is not None and query.limit is not None:
        return f"OFFSET {expression(query.offset)} LIMIT {expression(query.limit)}"
    return None


def text(query: Query) -> str:
    """A whole query."""
    selected = projection(query)
    if query.top is not None:
        selected = selected.replace("SELECT ", f"SELECT TOP {expression(query.top)} ", 1)
    parts = [selected]
    parts += [f"{'JOIN' if position else 'FROM'} {source(node)}" for position, node in enumerate(query.sources)]
    if query.where is not None:
        parts.append(f"WHERE {expression(query.where)}")
    if query.group_by:
        parts.append(f"GROUP BY {_listed(query.group_by)}")
    if query.order_by:
        parts.append(order_by(query.order_by))
    if query.top is None and (ending := window(query)):
        parts.append(ending)
    return " ".join(parts)
