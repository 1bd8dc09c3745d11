"""The conditions of a query that a database can test, with exactly the meaning that the evaluator gives them.

In the query language a condition is true, false or undefined, and NOT keeps undefined as it is. In SQL the same
comparison would be true, false or NULL for other reasons. So each condition is translated twice: into what holds where
it is true, and into what holds where it is false. Both are built of tests that hold or do not, by AND and OR alone.
"""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, NamedTuple

from ttlstore.engine.json import ESCAPED, Json, Operator, Path, Rank, is_long
from ttlstore.query.like import like_prefix
from ttlstore.query.syntax import Between, Binary, Call, Expression, In, Like, Literal, Logical, Parameter, Unary, node
from ttlstore.query.syntax import Path as PathNode
from ttlstore.query.values import MAX_INT, MIN_INT, UNDEFINED, Value

# What is pushed down of one query. SQLite ends at 1,000 levels, some 30,000 parameters and 100 open brackets.
MAX_TESTS = 100
MAX_OPERANDS = 1000
MAX_DEPTH = 8  # of AND in OR in AND …

_LAST_CHARACTER = "\U0010ffff"
_BEFORE_SURROGATES, _AFTER_SURROGATES = "\ud7ff", "\ue000"

DEFINED = tuple(Rank)[1:]
_TYPE_CHECKS: dict[str, tuple[Rank, ...]] = {
    "IS_DEFINED": DEFINED,
    "IS_NULL": (Rank.NULL,),
    "IS_BOOL": (Rank.FALSE, Rank.TRUE),
    "IS_NUMBER": (Rank.NUMBER,),
    "IS_FINITE_NUMBER": (Rank.NUMBER,),
    "IS_STRING": (Rank.STRING,),
    "IS_ARRAY": (Rank.ARRAY,),
    "IS_OBJECT": (Rank.OBJECT,),
    "IS_PRIMITIVE": (Rank.NULL, Rank.FALSE, Rank.TRUE, Rank.NUMBER, Rank.STRING),
}


# --- constants ------------------------------------------------------------------------------------------------------


@node
class Operand:
    """What a property is compared with: a literal, or a parameter by its name; or what follows its every extension."""

    literal: Value
    parameter: str | None = None
    after_prefix: bool = False

    def value(self, parameters: Mapping[str, Value]) -> Value:
        value = self.literal if self.parameter is None else parameters[self.parameter]
        return successor(value) if self.after_prefix else value


class Kind(NamedTuple):
    """All that a plan may depend on of a constant: another value of the same kind has the same plan."""

    rank: Rank
    comparable: bool
    """Whether the database compares it as the evaluator does."""
    prefix: bool = False
    """Whether it is a string of which it can be said what follows all that starts with it."""
    plain: bool = False
    """Whether it is a string that JSON writes without escapes."""
    long: bool = False
    """Whether it is a string of which an index may not hold all."""


# What most constants are.
_PLAIN_STRING = Kind(Rank.STRING, True, True, True)
_NUMBER = Kind(Rank.NUMBER, True)


def kind_of(value: Value) -> Kind:
    if type(value) is str:
        comparable = "\0" not in value  # what the engine promises to compare has none
        prefix = comparable and bool(value) and value[-1] != _LAST_CHARACTER
        plain = ESCAPED.search(value) is None
        long = is_long(value)
        return _PLAIN_STRING if prefix and plain and not long else Kind(Rank.STRING, comparable, prefix, plain, long)
    if type(value) is int or type(value) is float:
        return _NUMBER if type(value) is float or MIN_INT <= value <= MAX_INT else Kind(Rank.NUMBER, False)
    if type(value) is bool:
        return Kind(Rank.TRUE if value else Rank.FALSE, True)
    if value is None:
        return Kind(Rank.NULL, True)
    if value is UNDEFINED:
        return Kind(Rank.UNDEFINED, True)
    return Kind(Rank.ARRAY if type(value) is list else Rank.OBJECT, False)


def successor(prefix: str) -> str:
    """The first string after all those that start with this one."""
    last = prefix[-1]
    return prefix[:-1] + (_AFTER_SURROGATES if last == _BEFORE_SURROGATES else chr(ord(last) + 1))


# --- tests ----------------------------------------------------------------------------------------------------------


@node
class IsA:
    """The value is of one of these types."""

    path: Path
    ranks: tuple[Rank, ...]


@node
class Compare:
    """The value is a number, or it is a string, and compares so."""

    path: Path
    rank: Rank
    operator: Operator
    operand: Operand
    plain: bool = False
    """Whether the operand is a string that JSON writes without escapes."""
    long: bool = False
    """Whether it is a string of which an index may not hold all."""


@node
class Among:
    """The value is a number, or it is a string, and one of these."""

    path: Path
    rank: Rank
    operands: tuple[Operand, ...]
    long: bool = False
    """Whether one of them is a string of which an index may not hold all."""


@node
class InPartition:
    """The document is in this partition."""

    operand: Operand


@node
class All:
    tests: tuple["Test", ...]


@node
class AnyOf:
    tests: tuple["Test", ...]


Test = IsA | Compare | Among | InPartition | All | AnyOf
ALWAYS, NEVER = All(()), AnyOf(())


class Outcomes(NamedTuple):
    """Where a condition is true, and where it is false; elsewhere it is undefined."""

    true: Test
    false: Test


class Weight(NamedTuple):
    """How much of a statement a test takes."""

    tests: int = 0
    operands: int = 0
    depth: int = 0

    def plus(self, other: "Weight") -> "Weight":
        return Weight(self.tests + other.tests, self.operands + other.operands, max(self.depth, other.depth))

    def fits(self) -> bool:
        """Whether a database takes a statement with it: none takes one of any length."""
        return self.tests <= MAX_TESTS and self.operands <= MAX_OPERANDS and self.depth <= MAX_DEPTH


def weight(test: Test) -> Weight:
    match test:
        case All(tests) | AnyOf(tests):
            inner = Weight()
            for part in tests:
                inner = inner.plus(weight(part))
            return Weight(inner.tests, inner.operands, inner.depth + 1)
        case Among(_, _, operands):
            return Weight(1, len(operands))
    return _ONE


_ONE = Weight(1, 1)


def all_of(tests: Iterable[Test]) -> Test:
    parts = [part for test in tests for part in (test.tests if isinstance(test, All) else (test,))]
    if NEVER in parts:
        return NEVER
    return parts[0] if len(parts) == 1 else All(tuple(parts))


def any_of(tests: Iterable[Test]) -> Test:
    parts = [part for test in tests for part in (test.tests if isinstance(test, AnyOf) else (test,))]
    if ALWAYS in parts:
        return ALWAYS
    parts = _merged(parts)
    return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))


def _merged(parts: list[Test]) -> list[Test]:
    """Equality with one constant or another, on one path, as one test, which an index can answer."""
    merged: dict[object, Test] = {}
    for part in parts:
        if isinstance(part, Among) or (isinstance(part, Compare) and part.operator == "="):
            key = (part.path, part.rank)
            found = merged.get(key)
            merged[key] = part if found is None else _one_of(key, found, part)
        else:
            merged[part] = part
    return list(merged.values())


def _one_of(key: tuple[Path, Rank], *parts: Test) -> Among:
    """The parts are equality with one constant or with several."""
    equal = [part for part in parts if isinstance(part, Among | Compare)]
    operands = [part.operands if isinstance(part, Among) else (part.operand,) for part in equal]
    return Among(*key, tuple(chain.from_iterable(operands)), any(part.long for part in equal))


# --- translation ----------------------------------------------------------------------------------------------------

_MIRRORED: dict[str, str] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SQL: dict[str, Operator] = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_OPPOSITE: dict[str, str] = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_HOLDS: dict[str, tuple[int, ...]] = {
    "=": (0,),
    "!=": (-1, 1),
    "<": (-1,),
    "<=": (-1, 0),
    ">": (1,),
    ">=": (0, 1),
}
_BOOLEANS = (Rank.FALSE, Rank.TRUE)
_ORDERED = (Rank.NUMBER, Rank.STRING)


class Translator:
    """Translates the conditions on one alias, for parameters of given kinds."""

    def __init__(self, alias: str, root: Path, kinds: Mapping[str, Kind], json: Json) -> None:
        """`alias` stands for what is at `root` in a document."""
        self._alias = alias
        self.root = root
        self._kinds = kinds
        self._json = json

    def path(self, node: Expression) -> Path | None:
        """Where a node looks in a document; None if it does something else, or what the database cannot."""
        if not isinstance(node, PathNode) or node.alias != self._alias:
            return None
        path = self.root + node.steps
        return path if path and self._json.reaches(path) else None

    def outcomes(self, node: Expression) -> Outcomes | None:
        """None: this is to be evaluated."""
        match node:
            case Logical(operator, operands):
                return self._logical(operator, operands)
            case Unary("NOT", operand):
                inner = self.outcomes(operand)
                return inner and Outcomes(inner.false, inner.true)
            case Binary(operator, left, right) if operator in _SQL:
                return self._comparison(operator, left, right)
            case Between(operand, low, high, negated):
                return self._between(operand, low, high, negated)
            case In(operand, choices, negated):
                return _negated(self._in(operand, choices), negated)
            case Like(operand, pattern, escape, negated):
                return _negated(self._like(operand, pattern, escape), negated)
            case Call(name, (argument,)) if name in _TYPE_CHECKS:
                return self._type_check(argument, _TYPE_CHECKS[name])
            case Call("STARTSWITH", (operand, prefix)):
                constant = self._constant(prefix)
                return constant and self._prefix(operand, *constant)
            case Literal() | Parameter():
                return self._constant_condition(node)
        path = self.path(node)
        return None if path is None else Outcomes(IsA(path, (Rank.TRUE,)), IsA(path, (Rank.FALSE,)))

    def _constant(self, node: Expression) -> tuple[Operand, Kind] | None:
        if isinstance(node, Literal):
            return Operand(node.value), kind_of(node.value)
        if isinstance(node, Parameter):
            return Operand(None, node.name), self._kinds[node.name]
        return None

    def _constant_condition(self, node: Expression) -> Outcomes | None:
        constant = self._constant(node)
        if constant is None:
            return None
        rank = constant[1].rank
        return Outcomes(ALWAYS if rank is Rank.TRUE else NEVER, ALWAYS if rank is Rank.FALSE else NEVER)

    def _logical(self, operator: str, operands: tuple[Expression, ...]) -> Outcomes | None:
        parts = []
        for operand in operands:
            part = self.outcomes(operand)
            if part is None:
                return None
            parts.append(part)
        true, false = (part.true for part in parts), (part.false for part in parts)
        if operator == "AND":
            return Outcomes(all_of(true), any_of(false))
        return Outcomes(any_of(true), all_of(false))

    def _comparison(self, operator: str, left: Expression, right: Expression) -> Outcomes | None:
        path, constant = self.path(left), self._constant(right)
        if path is None or constant is None:
            path, constant, operator = self.path(right), self._constant(left), _MIRRORED[operator]
        if path is None or constant is None:
            return None
        return self._compared(path, operator, *constant)

    @staticmethod
    def _compared(path: Path, operator: str, operand: Operand, kind: Kind) -> Outcomes | None:
        if not kind.comparable:
            return None
        if kind.rank in _ORDERED:
            return Outcomes(
                Compare(path, kind.rank, _SQL[operator], operand, kind.plain, kind.long),
                Compare(path, kind.rank, _SQL[_OPPOSITE[operator]], operand, long=kind.long),
            )
        if kind.rank is Rank.UNDEFINED:
            return Outcomes(NEVER, NEVER)
        if kind.rank is Rank.NULL:
            null = IsA(path, (Rank.NULL,))
            return Outcomes(null, NEVER) if 0 in _HOLDS[operator] else Outcomes(NEVER, null)
        true = tuple(rank for rank in _BOOLEANS if (rank > kind.rank) - (rank < kind.rank) in _HOLDS[operator])
        return Outcomes(_is_a(path, true), _is_a(path, set(_BOOLEANS).difference(true)))

    def _between(self, operand: Expression, low: Expression, high: Expression, negated: bool) -> Outcomes | None:
        above, below = self._comparison(">=", operand, low), self._comparison("<=", operand, high)
        if above is None or below is None:
            return None
        return _negated(Outcomes(all_of((above.true, below.true)), any_of((above.false, below.false))), negated)

    def _in(self, operand: Expression, choices: tuple[Expression, ...]) -> Outcomes | None:
        path = self.path(operand)
        constants = [constant for node in choices if (constant := self._constant(node)) is not None]
        if path is None or len(constants) < len(choices) or not all(kind.comparable for _, kind in constants):
            return None
        by_rank: dict[Rank, list[Operand]] = {}
        for choice, kind in constants:
            if kind.rank is not Rank.UNDEFINED:
                by_rank.setdefault(kind.rank, []).append(choice)
        long = any(kind.long for _, kind in constants)
        true: list[Test] = []
        false: list[Test] = []
        for rank in (Rank.NUMBER, Rank.STRING):
            if rank in by_rank:
                found = by_rank[rank]
                true.append(Among(path, rank, tuple(found), long))
                false.append(all_of(Compare(path, rank, "<>", choice, long=long) for choice in found))
        others = by_rank.keys() - {Rank.NUMBER, Rank.STRING}
        true.append(_is_a(path, others))
        false.append(_is_a(path, set(DEFINED).difference(by_rank)))
        return Outcomes(any_of(true), any_of(false))

    def _like(self, operand: Expression, pattern: Expression, escape: Expression | None) -> Outcomes | None:
        if not isinstance(pattern, Literal) or not (escape is None or isinstance(escape, Literal)):
            return None
        sign: Any = None if escape is None else escape.value
        if type(pattern.value) is not str or not (sign is None or type(sign) is str):
            return None
        found = like_prefix(pattern.value, sign)
        if found is None or not found[1]:
            return None
        return self._prefix(operand, Operand(found[0]), kind_of(found[0]))

    def _prefix(self, node: Expression, prefix: Operand, kind: Kind) -> Outcomes | None:
        path = self.path(node)
        if path is None or not kind.prefix:
            return None
        after = Operand(prefix.literal, prefix.parameter, after_prefix=True)

        def compare(operator: Operator, operand: Operand) -> Test:
            return Compare(path, Rank.STRING, operator, operand, long=kind.long)

        return Outcomes(
            all_of((compare(">=", prefix), compare("<", after))),
            any_of((compare("<", prefix), compare(">=", after))),
        )

    def _type_check(self, node: Expression, ranks: tuple[Rank, ...]) -> Outcomes | None:
        path = self.path(node)
        return None if path is None else Outcomes(_is_a(path, ranks), _is_a(path, set(Rank).difference(ranks)))


def _is_a(path: Path, ranks: Iterable[Rank]) -> Test:
    chosen = tuple(sorted(ranks))
    return IsA(path, chosen) if chosen else NEVER


def _negated(outcomes: Outcomes | None, negated: bool) -> Outcomes | None:
    return Outcomes(outcomes.false, outcomes.true) if outcomes and negated else outcomes
