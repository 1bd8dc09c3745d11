"""Expressions as Python functions of a row. Compiled once for a query, run for every row."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ttlstore.errors import QueryError
from ttlstore.query.functions import FUNCTIONS
from ttlstore.query.functions.size import checked_value
from ttlstore.query.like import compile_like
from ttlstore.query.mistakes import located
from ttlstore.query.operators import BINARY, UNARY, at_least, at_most, item
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
    Exists,
    Expression,
    In,
    Like,
    Literal,
    Logical,
    ObjectLiteral,
    Parameter,
    Path,
    Query,
    ScalarSubquery,
    Unary,
)
from ttlstore.query.values import UNDEFINED, Value, identity

Row = tuple[Value, ...]  # what each alias in scope stands for, by its slot
Evaluator = Callable[[Row], Value]
Subquery = Callable[[Row], Iterator[Value]]


@dataclass(frozen=True, slots=True)
class Scope:
    """The slots of a row: of aliases, and of expressions that are there already (groups and their aggregates)."""

    aliases: Mapping[str, int]
    width: int
    computed: Mapping[Expression, int]

    def plus(self, alias: str) -> "Scope":
        return Scope({**self.aliases, alias: self.width}, self.width + 1, self.computed)


EMPTY = Scope({}, 0, {})


MAX_ROWS = 10_000_000  # that JOINs and subqueries make of one document: some seconds


class RowBudget:
    """How many rows may still be made of a document. Five JOINs over 1,000 elements would make 10^15, and hang."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_ROWS

    def renew(self) -> None:
        self._left = MAX_ROWS

    def spent(self, elements: list[Value]) -> list[Value]:
        """The elements, each of which will be a row. Raises QueryError."""
        self._left -= len(elements)
        if self._left < 0:
            raise QueryError(f"the JOINs and subqueries make more than {MAX_ROWS} rows of one document")
        return elements


@dataclass(frozen=True, slots=True)
class Binding:
    """What a query is run with: its text for errors, the values of its parameters, the time."""

    text: str
    parameters: Mapping[str, Value]
    now_ms: int
    budget: RowBudget


class ExpressionCompiler:
    """Compiles the expressions of one scope. `subquery` compiles the queries in them."""

    def __init__(self, scope: Scope, binding: Binding, subquery: Callable[[Query, Scope, Binding], Subquery]) -> None:
        self._scope = scope
        self._binding = binding
        self._subquery = subquery

    def compile(self, node: Expression) -> Evaluator:
        slot = self._scope.computed.get(node) if self._scope.computed else None
        if slot is not None:
            return _slot(slot)
        method = self._METHODS[type(node)]
        return method(self, node)

    def _all(self, nodes: tuple[Expression, ...]) -> list[Evaluator]:
        return [self.compile(node) for node in nodes]

    def _constant(self, node: Expression) -> Value | None:
        """The value of a literal or parameter as a list of one; None for what depends on the row."""
        if isinstance(node, Literal):
            return [node.value]
        if isinstance(node, Parameter):
            return [self._binding.parameters[node.name]]
        return None

    # --- values

    def _literal(self, node: Literal) -> Evaluator:
        value = node.value
        return lambda row: value

    def _parameter(self, node: Parameter) -> Evaluator:
        value = self._binding.parameters[node.name]
        return lambda row: value

    def _path(self, node: Path) -> Evaluator:
        slot = self._scope.aliases[node.alias]
        return path_getter(slot, node.steps)

    def _access(self, node: Access) -> Evaluator:
        target, key = self.compile(node.target), self.compile(node.key)
        return lambda row: item(target(row), key(row))

    def _array(self, node: ArrayLiteral) -> Evaluator:
        items = self._all(node.items)
        return lambda row: [value for item in items if (value := item(row)) is not UNDEFINED]

    def _object(self, node: ObjectLiteral) -> Evaluator:
        return object_maker([(name, self.compile(value)) for name, value in node.items])

    # --- operators

    def _unary(self, node: Unary) -> Evaluator:
        apply, operand = UNARY[node.operator], self.compile(node.operand)
        return lambda row: apply(operand(row))

    def _binary(self, node: Binary) -> Evaluator:
        apply, left, right = BINARY[node.operator], self.compile(node.left), self.compile(node.right)
        constant = self._constant(node.right)
        if constant is not None:
            value = constant[0]
            return lambda row: apply(left(row), value)
        return lambda row: apply(left(row), right(row))

    def _logical(self, node: Logical) -> Evaluator:
        operands = self._all(node.operands)
        decisive = node.operator == "OR"  # the operand that decides, whatever the others are

        def evaluate(row: Row) -> Value:
            result: Value = not decisive
            for operand in operands:
                value = operand(row)
                if value is decisive:
                    return decisive
                if value is not result:
                    result = UNDEFINED
            return result

        return evaluate

    def _coalesce(self, node: Coalesce) -> Evaluator:
        operands = self._all(node.operands)

        def evaluate(row: Row) -> Value:
            for operand in operands:
                value = operand(row)
                if value is not UNDEFINED:
                    return value
            return UNDEFINED

        return evaluate

    def _conditional(self, node: Conditional) -> Evaluator:
        condition, then, otherwise = self._all((node.condition, node.then, node.otherwise))
        return lambda row: then(row) if condition(row) is True else otherwise(row)

    def _in(self, node: In) -> Evaluator:
        operand = self.compile(node.operand)
        negated = node.negated
        constants = {identity(value[0]) for choice in node.choices if (value := self._constant(choice)) is not None}
        others = [self.compile(choice) for choice in node.choices if self._constant(choice) is None]

        def evaluate(row: Row) -> Value:
            value = operand(row)
            if value is UNDEFINED:
                return UNDEFINED
            sought = identity(value)
            found = sought in constants or any(identity(other(row)) == sought for other in others)
            return found is not negated

        return evaluate

    def _between(self, node: Between) -> Evaluator:
        operand, low, high = self._all((node.operand, node.low, node.high))
        negated = node.negated

        def evaluate(row: Row) -> Value:
            value = operand(row)
            above, below = at_least(value, low(row)), at_most(value, high(row))
            if above is False or below is False:
                return negated
            return UNDEFINED if above is UNDEFINED or below is UNDEFINED else not negated

        return evaluate

    def _like(self, node: Like) -> Evaluator:
        operand, pattern = self.compile(node.operand), self.compile(node.pattern)
        escape = self.compile(node.escape) if node.escape is not None else None
        negated = node.negated

        def matcher(row: Row) -> Callable[[str], bool] | None:
            wanted, sign = pattern(row), None if escape is None else escape(row)
            if type(wanted) is not str or not (sign is None or type(sign) is str):
                return None
            return compile_like(wanted, sign)

        constant = all(part is None or self._constant(part) is not None for part in (node.pattern, node.escape))
        always = matcher(()) if constant else None

        def evaluate(row: Row) -> Value:
            value = operand(row)
            matches = always if constant else matcher(row)
            return UNDEFINED if matches is None or type(value) is not str else matches(value) is not negated

        return evaluate

    # --- functions and subqueries

    def _call(self, node: Call) -> Evaluator:
        function = FUNCTIONS[node.name]
        if function.problem is not None:
            constants = [self._constant(argument) for argument in node.arguments[1:]]
            problem = function.problem(*[UNDEFINED if constant is None else constant[0] for constant in constants])
            if problem is not None:
                raise located(self._binding.text, node.at, problem)
        run, arguments = function.run, self._all(node.arguments)
        if function.timed:
            now = self._binding.now_ms
            return lambda row: run(now, *[argument(row) for argument in arguments])
        if len(arguments) == 1:
            only = arguments[0]
            return lambda row: run(only(row))
        if len(arguments) == 2:
            first, second = arguments
            return lambda row: run(first(row), second(row))
        return lambda row: run(*[argument(row) for argument in arguments])

    def _aggregate(self, node: Aggregate) -> Evaluator:
        raise AssertionError(f"{node} is computed before what it stands in")

    def _exists(self, node: Exists) -> Evaluator:
        results = self._subquery(node.query, self._scope, self._binding)
        return lambda row: next(results(row), UNDEFINED) is not UNDEFINED

    def _array_subquery(self, node: ArraySubquery) -> Evaluator:
        results = self._subquery(node.query, self._scope, self._binding)
        return lambda row: checked_value("ARRAY", list(results(row)))

    def _scalar_subquery(self, node: ScalarSubquery) -> Evaluator:
        results = self._subquery(node.query, self._scope, self._binding)
        text, at = self._binding.text, node.at

        def evaluate(row: Row) -> Value:
            found = list(islice(results(row), 2))
            if len(found) > 1:
                raise located(text, at, "this subquery has more than one result: put it into ARRAY(…), or add TOP 1")
            return checked_value("the subquery", found[0]) if found else UNDEFINED

        return evaluate

    _METHODS: dict[type, Callable[[Any, Any], Evaluator]] = {  # noqa: RUF012  # it never changes
        Literal: _literal,
        Parameter: _parameter,
        Path: _path,
        Access: _access,
        Unary: _unary,
        Binary: _binary,
        Logical: _logical,
        Coalesce: _coalesce,
        Conditional: _conditional,
        In: _in,
        Between: _between,
        Like: _like,
        Call: _call,
        Aggregate: _aggregate,
        ObjectLiteral: _object,
        ArrayLiteral: _array,
        Exists: _exists,
        ArraySubquery: _array_subquery,
        ScalarSubquery: _scalar_subquery,
    }


def _slot(slot: int) -> Evaluator:
    return lambda row: row[slot]


def path_getter(slot: int, steps: tuple[str | int, ...]) -> Evaluator:
    """What stands at the end of a path; undefined where it leads nowhere."""
    if not steps:
        return _slot(slot)
    if len(steps) == 1 and isinstance(steps[0], str):
        name = steps[0]

        def property_of(row: Row) -> Value:
            value = row[slot]
            return value.get(name, UNDEFINED) if type(value) is dict else UNDEFINED

        return property_of

    def evaluate(row: Row) -> Value:
        value = row[slot]
        for step in steps:
            if type(value) is dict:
                value = value.get(step, UNDEFINED)
            elif type(value) is list and type(step) is int and step < len(value):
                value = value[step]
            else:
                return UNDEFINED
        return value

    return evaluate


def object_maker(items: list[tuple[str, Evaluator]]) -> Evaluator:
    """An object of the properties that are defined."""

    def evaluate(row: Row) -> Value:
        made = {}
        for name, maker in items:
            value = maker(row)
            if value is not UNDEFINED:
                made[name] = value
        return made

    return evaluate
