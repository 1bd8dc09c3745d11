"""From what the grammar matches to the syntax tree. Each method is named for a rule of grammar.lark."""

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias, TypeGuard

from ttlstore.query.automaton import Token
from ttlstore.query.functions import AGGREGATES, FUNCTIONS, nearest
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
    Projection,
    Query,
    ScalarSubquery,
    Single,
    Source,
    Star,
    Unary,
    Within,
)
from ttlstore.query.values import MAX_INT, UNDEFINED, is_number

Steps: TypeAlias = Sequence[Expression]
"""What leads on from a value: names and other keys."""

# How tightly the operators of a chain bind. Those of the reference that give booleans bind the loosest, so that
# `c.flags & 4 = 4` and `c.first || c.last = "…"` say what they seem to say.
PRECEDENCE: Final = {
    **dict.fromkeys(("=", "!=", "<>"), 1),
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

    def query(
        self,
        select: Token,
        distinct: Token | None,
        top: Literal | Parameter | None,
        projection: Projection,
        sources: tuple[Source, ...] | None,
        where: Expression | None,
        group_by: tuple[Expression, ...] | None,
        order_by: tuple[Order, ...] | None,
        offset: tuple[Literal | Parameter, Literal | Parameter] | None,
    ) -> Query:
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
            at=select[1],
        )

    def condition(self, expression: Expression) -> Query:
        return Query(Star(), (Within(Path("c"), "c"),), expression)

    def top(self, count: Token) -> Literal | Parameter:
        return _count("TOP", count)

    def offset(self, skip: Token, limit: Token) -> tuple[Literal | Parameter, Literal | Parameter]:
        return _count("OFFSET", skip), _count("LIMIT", limit)

    def star(self, star: Token) -> Star:
        return Star(star[1])

    def single(self, expression: Expression, alias: Token | None) -> Single:
        return Single(expression, expression.at)  # its name is read, and means nothing

    def selected(self, expression: Expression, alias: Token | None) -> tuple[Expression, Token | None]:
        return expression, alias

    def fields(self, *selected: tuple[Expression, Token | None]) -> Fields:
        items: dict[str, Expression] = {}
        unnamed = 0
        for expression, alias in selected:
            at = expression.at
            if alias is not None:
                name, at = alias
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
        return Fields(tuple(items.items()), selected[0][0].at)

    def from_clause(self, *sources: Source) -> tuple[Source, ...]:
        return sources

    def within(self, root: Token, *steps_and_alias: Any) -> Within:
        *steps, alias = steps_and_alias
        path = _constant_path(self.path(root, *steps))
        return Within(path, _last_name(path) or "" if alias is None else alias[0], root[1])

    def each(self, alias: Token, root: Token, *steps: Steps) -> Each:
        return Each(_constant_path(self.path(root, *steps)), *alias)

    def each_result(self, alias: Token, query: Query) -> Derived:
        name, at = alias
        return Derived(query, name, True, at)

    def derived(self, query: Query, alias: Token | None) -> Derived:
        return Derived(query, "" if alias is None else alias[0], False, query.at)

    def where(self, expression: Expression) -> Expression:
        return expression

    def group_by(self, *expressions: Expression) -> tuple[Expression, ...]:
        return expressions

    def order_by(self, *orders: Order) -> tuple[Order, ...]:
        return orders

    def ordered(self, expression: Expression, direction: Token | None) -> Order:
        return Order(expression, direction is not None and direction[0].upper() == "DESC")

    # --- expressions

    def conditional(self, condition: Expression, then: Expression, otherwise: Expression) -> Conditional:
        return Conditional(condition, then, otherwise, condition.at)

    def logic(self, first: Expression, *rest: Any) -> Expression:
        if len(rest) == 2:  # as in most: nothing is to be put in order
            (operator, _), second = rest
            return _logical(operator.upper(), [first, second])
        choices: list[list[list[Expression]]] = [[[first]]]  # those of ??, each of those of OR, each of those of AND
        for (operator, _), operand in zip(rest[::2], rest[1::2], strict=True):
            if operator == "??":
                choices.append([[operand]])
            elif operator.upper() == "OR":
                choices[-1].append([operand])
            else:
                choices[-1][-1].append(operand)
        return _logical("??", [_logical("OR", [_logical("AND", both) for both in choice]) for choice in choices])

    def unary(self, sign: Token, operand: Expression) -> Expression:
        operator, at = sign[0].upper(), sign[1]
        if operator in "+-" and isinstance(operand, Literal) and is_number(operand.value):
            return Literal(-operand.value if operator == "-" else operand.value, at)
        return Unary(operator, operand, at)

    def in_list(self, operand: Expression, negation: Token | None, *choices: Expression) -> In:
        return In(operand, choices, negation is not None, operand.at)

    def between(
        self, operand: Expression, negation: Token | None, low: Expression, _: Token, high: Expression
    ) -> Between:
        return Between(operand, low, high, negation is not None, operand.at)

    def like(self, operand: Expression, negation: Token | None, pattern: Expression, escape: Expression | None) -> Like:
        return Like(operand, pattern, escape, negation is not None, operand.at)

    def operation(self, first: Expression, *rest: Any) -> Expression:
        """The operators that wait always bind less tightly than the one that is read: the others are done first."""
        if len(rest) == 2:  # as in most: nothing is to be put in order
            (operator, _), second = rest
            return _binary(operator, first, second)
        operands: list[Expression] = [first]
        waiting: list[str] = []
        for (operator, _), operand in zip(rest[::2], rest[1::2], strict=True):
            while waiting and PRECEDENCE[waiting[-1]] >= PRECEDENCE[operator]:
                _join(operands, waiting.pop())
            waiting.append(operator)
            operands.append(operand)
        while waiting:
            _join(operands, waiting.pop())
        return operands[0]

    def path(self, root: Token, *steps: Steps) -> Expression:
        names = tuple(root[0].split("."))
        path = Path(names[0], names[1:], root[1])
        return _lead(path, steps) if steps else path

    def access(self, target: Expression, *steps: Steps) -> Expression:
        return _lead(target, steps)

    def dot(self, names: Token) -> Steps:
        return [Literal(name, names[1]) for name in names[0].split(".")]

    def bracket(self, key: Expression) -> Steps:
        return [key]

    # --- atoms

    def string(self, token: Token) -> Literal:
        return Literal(_unquoted(token), token[1])

    def number(self, token: Token) -> Literal:
        return Literal(_number(token), token[1])

    def constant(self, token: Token) -> Literal:
        return Literal(_CONSTANTS[token[0].lower()], token[1])

    def parameter(self, token: Token) -> Parameter:
        return Parameter(token[0][1:], token[1])

    def call(self, function: Token, *given: Expression | None) -> Expression:
        name, at = function[0].upper(), function[1]
        arguments = _those(given)
        if name in AGGREGATES:
            if len(arguments) != 1:
                raise Mistake(at, f"{name} takes 1 argument, got {len(arguments)}")
            return Aggregate(name, arguments[0], at)
        known = FUNCTIONS.get(name)
        if known is None:
            near = nearest(name)
            raise Mistake(
                at, f"there is no function {clipped(function[0])}" + (f": did you mean {near}?" if near else "")
            )
        if not known.takes(len(arguments)):
            raise Mistake(at, f"{name} takes {known.arity()}, got {len(arguments)}")
        return Call(name, arguments, at)

    def exists(self, word: Token, query: Query) -> Exists:
        return Exists(query, word[1])

    def array_subquery(self, word: Token, query: Query) -> ArraySubquery:
        return ArraySubquery(query, word[1])

    def scalar_subquery(self, query: Query) -> ScalarSubquery:
        return ScalarSubquery(query, query.at)

    def parenthesized(self, expression: Expression) -> Expression:
        return expression

    def array_literal(self, bracket: Token, *items: Expression | None) -> ArrayLiteral:
        return ArrayLiteral(_those(items), bracket[1])

    def object_literal(self, brace: Token, *entries: tuple[Token, Expression] | None) -> ObjectLiteral:
        items: dict[str, Expression] = {}
        for key, value in _those(entries):
            name = _unquoted(key) if key[0][0] in "\"'" else key[0]
            if name in items:
                raise Mistake(key[1], f"the object has a property {clipped(name)} already")
            items[name] = value
        return ObjectLiteral(tuple(items.items()), brace[1])

    def entry(self, key: Token, value: Expression) -> tuple[Token, Expression]:
        return key, value


# --- pieces ---------------------------------------------------------------------------------------------------------


def _join(operands: list[Expression], operator: str) -> None:
    right = operands.pop()
    left = operands.pop()
    operands.append(_binary(operator, left, right))


def _binary(operator: str, left: Expression, right: Expression) -> Binary:
    return Binary("!=" if operator == "<>" else operator, left, right, left.at)


def _logical(operator: str, operands: list[Expression]) -> Expression:
    if len(operands) == 1:
        return operands[0]
    at = operands[0].at
    return Coalesce(tuple(operands), at) if operator == "??" else Logical(operator, tuple(operands), at)


def _those(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """What stands in brackets; nothing is None."""
    return () if given == (None,) else given


def _lead(target: Expression, steps: Sequence[Steps]) -> Expression:
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


def _constant_path(path: Expression) -> Path:
    if not isinstance(path, Path):
        raise Mistake(path.at, "a path in FROM leads by names and by indexes from 0, such as c.items[0]")
    return path


def _last_name(expression: Expression) -> str | None:
    if not isinstance(expression, Path):
        return None
    last = expression.steps[-1] if expression.steps else expression.alias
    return last if isinstance(last, str) else None


def _count(clause: str, token: Token) -> Literal | Parameter:
    text, at = token
    if text[0] == "@":
        return Parameter(text[1:], at)
    value = _number(token)
    if type(value) is not int:
        raise Mistake(at, f"{clause} takes a whole number, got {text}")
    return Literal(value, at)


def _number(token: Token) -> int | float:
    text, at = token
    if text.isdecimal():
        digits = text.lstrip("0")
        if len(digits) <= _INT_DIGITS and (exact := int(digits or "0")) <= MAX_INT:
            return exact
    value = float(text)
    if value - value != 0:
        raise Mistake(at, "this number is too large: numbers end at 1.7976931348623157e308")
    return value


def _unquoted(token: Token) -> str:
    text = token[0][1:-1]
    if "\\" not in text:
        return text
    start = token[1] + 1

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
