"""From what the grammar matches to the syntax tree. Each method is named for a rule of grammar.lark."""

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias, TypeGuard

from ttlstore.query.functions import AGGREGATES, FUNCTIONS, nearest
from ttlstore.query.lexer import Token
from ttlstore.query.mistakes import Mistake, clipped
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
    Star,
    Unary,
    Within,
)
from ttlstore.query.values import MAX_INT, UNDEFINED, is_number

Children: TypeAlias = list[Any]

# How tightly the operators of a chain bind. Those of the reference that give booleans bind the loosest, so that
# `c.flags & 4 = 4` and `c.first || c.last = "…"` say what they seem to say.
PRECEDENCE: Final = {
    **dict.fromkeys(("=", "!="), 1),
    **dict.fromkeys(("<", "<=", ">", ">="), 2),
    "|": 3,
    "^": 4,
    "&": 5,
    **dict.fromkeys(("<<", ">>", ">>>"), 6),
    **dict.fromkeys(("+", "-", "||"), 7),
    **dict.fromkeys(("*", "/", "%"), 8),
}

_CONSTANTS: Final = {"null": None, "true": True, "false": False, "undefined": UNDEFINED}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_ESCAPED: Final = {**dict(zip("bfnrt", "\b\f\n\r\t", strict=True)), **{char: char for char in "\"'\\/"}}
_INT_DIGITS = 19  # of the largest 64-bit integer


class TreeBuilder:
    # --- clauses

    def query(self, children: Children) -> Query:
        select, distinct, top, projection, sources, where, group_by, order_by, offset = children
        skip, limit = offset or (None, None)
        if top and offset:
            raise Mistake(top.at, "TOP and OFFSET … LIMIT exclude each other: leave one out")
        return Query(
            projection,
            sources or (),
            where,
            group_by or (),
            order_by or (),
            distinct is not None,
            top,
            skip,
            limit,
            at=select.start_pos,
        )

    def condition(self, children: Children) -> Query:
        return Query(Star(), (Within(Path("c"), "c"),), children[0])

    def top(self, children: Children) -> Literal | Parameter:
        return _count("TOP", children[0])

    def offset(self, children: Children) -> tuple[Literal | Parameter, Literal | Parameter]:
        return _count("OFFSET", children[0]), _count("LIMIT", children[1])

    def star(self, children: Children) -> Star:
        return Star(children[0].start_pos)

    def single(self, children: Children) -> Single:
        return Single(children[0], children[0].at)

    def selected(self, children: Children) -> tuple[Expression, Token | None]:
        return children[0], children[1]

    def fields(self, children: Children) -> Fields:
        items: dict[str, Expression] = {}
        unnamed = 0
        for expression, alias in children:
            at = expression.at
            if alias is not None:
                name, at = alias.text, alias.start_pos
            elif (last := _last_name(expression)) is not None:
                name = last
            else:
                unnamed += 1
                name = f"${unnamed}"
            if name in items:
                raise Mistake(
                    at, f"the result has a property {clipped(name)} already: give one of them another name with AS"
                )
            items[name] = expression
        return Fields(tuple(items.items()), children[0][0].at)

    def from_clause(self, children: Children) -> tuple[Source, ...]:
        return tuple(children)

    def within(self, children: Children) -> Within:
        root, *steps, alias = children
        path = _constant_path(root, steps)
        return Within(path, alias.text if alias is not None else _last_name(path) or "", root.start_pos)

    def each(self, children: Children) -> Each:
        alias, root, *steps = children
        return Each(_constant_path(root, steps), alias.text, alias.start_pos)

    def each_result(self, children: Children) -> Derived:
        alias, query = children
        return Derived(query, alias.text, True, alias.start_pos)

    def derived(self, children: Children) -> Derived:
        query, alias = children
        return Derived(query, "" if alias is None else alias.text, False, query.at)

    def where(self, children: Children) -> Any:
        return children[0]

    def group_by(self, children: Children) -> tuple[Expression, ...]:
        return tuple(children)

    def order_by(self, children: Children) -> tuple[Order, ...]:
        return tuple(children)

    def ordered(self, children: Children) -> Order:
        expression, direction = children
        return Order(expression, direction is not None and direction.type == "DESC")

    # --- expressions

    def conditional(self, children: Children) -> Conditional:
        condition, then, otherwise = children
        return Conditional(condition, then, otherwise, condition.at)

    def logic(self, children: Children) -> Expression:
        choices: list[list[list[Expression]]] = [
            [[children[0]]]
        ]  # those of ??, each of those of OR, each of those of AND
        for position in range(1, len(children), 2):
            operator, operand = children[position].type, children[position + 1]
            if operator == "AND":
                choices[-1][-1].append(operand)
            elif operator == "OR":
                choices[-1].append([operand])
            else:
                choices.append([[operand]])
        either = [_logical("OR", [_logical("AND", both) for both in choice]) for choice in choices]
        return either[0] if len(either) == 1 else Coalesce(tuple(either), either[0].at)

    def unary(self, children: Children) -> Expression:
        sign, operand = children
        operator = sign.text.upper()
        if operator in "+-" and isinstance(operand, Literal) and is_number(operand.value):
            return Literal(-operand.value if operator == "-" else operand.value, sign.start_pos)
        return Unary(operator, operand, sign.start_pos)

    def in_list(self, children: Children) -> In:
        operand, negation, *choices = children
        return In(operand, tuple(choices), negation is not None, operand.at)

    def between(self, children: Children) -> Between:
        operand, negation, low, _, high = children
        return Between(operand, low, high, negation is not None, operand.at)

    def like(self, children: Children) -> Like:
        operand, negation, pattern, escape = children
        return Like(operand, pattern, escape, negation is not None, operand.at)

    def operation(self, children: Children) -> Expression:
        """The operators that wait always bind less tightly than the one that is read: the others are done first."""
        operands: list[Expression] = [children[0]]
        waiting: list[str] = []
        for position in range(1, len(children), 2):
            operator = children[position].text
            if operator == "<>":
                operator = "!="
            while waiting and PRECEDENCE[waiting[-1]] >= PRECEDENCE[operator]:
                _join(operands, waiting.pop())
            waiting.append(operator)
            operands.append(children[position + 1])
        while waiting:
            _join(operands, waiting.pop())
        return operands[0]

    def path(self, children: Children) -> Expression:
        root = _root(children[0])
        return root if len(children) == 1 else _lead(root, children[1:])

    def access(self, children: Children) -> Expression:
        return _lead(children[0], children[1:])

    def dot(self, children: Children) -> list[Expression]:
        return [Literal(name, children[0].start_pos) for name in children[0].text.split(".")]

    def bracket(self, children: Children) -> list[Expression]:
        return children

    # --- atoms

    def string(self, children: Children) -> Literal:
        return Literal(_unquoted(children[0]), children[0].start_pos)

    def number(self, children: Children) -> Literal:
        return Literal(_number(children[0]), children[0].start_pos)

    def constant(self, children: Children) -> Literal:
        return Literal(_CONSTANTS[children[0].text.lower()], children[0].start_pos)

    def parameter(self, children: Children) -> Parameter:
        return Parameter(children[0].text[1:], children[0].start_pos)

    def call(self, children: Children) -> Expression:
        token, *arguments = children
        name, at = token.text.upper(), token.start_pos
        if arguments == [None]:
            arguments = []
        if name in AGGREGATES:
            if len(arguments) != 1:
                raise Mistake(at, f"{name} takes 1 argument, got {len(arguments)}")
            return Aggregate(name, arguments[0], at)
        function = FUNCTIONS.get(name)
        if function is None:
            near = nearest(name)
            raise Mistake(
                at, f"there is no function {clipped(token.text)}" + (f": did you mean {near}?" if near else "")
            )
        if not function.takes(len(arguments)):
            raise Mistake(at, f"{name} takes {function.arity()}, got {len(arguments)}")
        return Call(name, tuple(arguments), at)

    def exists(self, children: Children) -> Exists:
        return Exists(children[1], children[0].start_pos)

    def array_subquery(self, children: Children) -> ArraySubquery:
        return ArraySubquery(children[1], children[0].start_pos)

    def scalar_subquery(self, children: Children) -> ScalarSubquery:
        return ScalarSubquery(children[0], children[0].at)

    def parenthesized(self, children: Children) -> Any:
        return children[0]

    def array_literal(self, children: Children) -> ArrayLiteral:
        bracket, *items = children
        return ArrayLiteral(() if items == [None] else tuple(items), bracket.start_pos)

    def object_literal(self, children: Children) -> ObjectLiteral:
        items: dict[str, Expression] = {}
        brace, *entries = children
        for key, value in entries if entries != [None] else ():
            name = _unquoted(key) if key.type == "STRING" else key.text
            if name in items:
                raise Mistake(key.start_pos, f"the object has a property {clipped(name)} already")
            items[name] = value
        return ObjectLiteral(tuple(items.items()), brace.start_pos)

    def entry(self, children: Children) -> tuple[Token, Expression]:
        return children[0], children[1]


# --- pieces ---------------------------------------------------------------------------------------------------------


def _join(operands: list[Expression], operator: str) -> None:
    right = operands.pop()
    left = operands.pop()
    operands.append(Binary(operator, left, right, left.at))


def _logical(operator: str, operands: list[Expression]) -> Expression:
    return operands[0] if len(operands) == 1 else Logical(operator, tuple(operands), operands[0].at)


def _root(token: Token) -> Path:
    alias, *steps = token.text.split(".")
    return Path(alias, tuple(steps), token.start_pos)


def _lead(target: Expression, steps: Sequence[Sequence[Expression]]) -> Expression:
    """One step after the other, as one path while it can be one."""
    keys = [key for step in steps for key in step]
    done = 0
    if isinstance(target, Path):
        constants: list[str | int] = []
        for key in keys:
            if not _is_step(key):
                break
            constants.append(key.value)
        done = len(constants)
        target = Path(target.alias, (*target.steps, *constants), target.at)
    for key in keys[done:]:
        target = Access(target, key, key.at)
    return target


def _is_step(key: Expression) -> TypeGuard[Literal]:
    """Whether a path can lead on by it: a name, or an index from 0."""
    return isinstance(key, Literal) and (type(key.value) is str or (type(key.value) is int and key.value >= 0))


def _constant_path(root: Token, steps: Sequence[Sequence[Expression]]) -> Path:
    path = _lead(_root(root), steps)
    if not isinstance(path, Path):
        raise Mistake(path.at, "a path in FROM leads by names and by indexes from 0, such as c.items[0]")
    return path


def _last_name(expression: Expression) -> str | None:
    if not isinstance(expression, Path):
        return None
    last = expression.steps[-1] if expression.steps else expression.alias
    return last if isinstance(last, str) else None


def _count(clause: str, token: Token) -> Literal | Parameter:
    if token.type == "PARAMETER":
        return Parameter(token.text[1:], token.start_pos)
    value = _number(token)
    if type(value) is not int:
        raise Mistake(token.start_pos, f"{clause} takes a whole number, got {token.text}")
    return Literal(value, token.start_pos)


def _number(token: Token) -> int | float:
    if token.text.isdecimal():
        digits = token.text.lstrip("0")
        if len(digits) <= _INT_DIGITS and (exact := int(digits or "0")) <= MAX_INT:
            return exact
    value = float(token.text)
    if value - value != 0:
        raise Mistake(token.start_pos, "this number is too large: numbers end at 1.7976931348623157e308")
    return value


def _unquoted(token: Token) -> str:
    text = token.text[1:-1]
    if "\\" not in text:
        return text
    start = token.start_pos + 1

    def unescaped(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) > 1:
            return chr(int(escape[1:], 16))
        if escape not in _ESCAPED:
            raise Mistake(start + match.start(), f"\\{escape} is no escape: write \\\\ for a backslash")
        return _ESCAPED[escape]

    text = _ESCAPE.sub(unescaped, text)
    if _PAIR.search(text):
        text = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Mistake(start - 1, "this string has half of a surrogate pair, which is no character") from None
    return text
