"""The syntax tree of a query. `at` is where a node stands in the text; it is no part of what the node means."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar, Union, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def node(cls: type[T]) -> type[T]:
    """A class of nodes, which nobody changes. The types alone see to it: a frozen one takes thrice as long to make."""
    return dataclass(slots=True, unsafe_hash="__hash__" not in vars(cls))(cls)


def _at() -> Any:
    return field(default=0, compare=False, repr=False)


# --- expressions ----------------------------------------------------------------------------------------------------


@node
class Literal:
    """null, true, false, a number, a string or undefined."""

    value: Any
    at: int = _at()

    # 1 and true are equal in Python, and are not in a query.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@node
class Parameter:
    """`@name`, without the @."""

    name: str
    at: int = _at()


@node
class Path:
    """`c`, `c.a.b`, `c["a"]`, `c.items[0]`: an alias, and the names and array indexes that lead on from it."""

    alias: str
    steps: tuple[str | int, ...] = ()
    at: int = _at()


@node
class Access:
    """`target[key]` where the target is no path, or the key no constant."""

    target: "Expression"
    key: "Expression"
    at: int = _at()


@node
class Unary:
    """operator: + - ~ NOT"""

    operator: str
    operand: "Expression"
    at: int = _at()


@node
class Binary:
    """operator: = != < <= > >= + - * / % & | ^ << >> >>> ||  (`<>` is read as `!=`)"""

    operator: str
    left: "Expression"
    right: "Expression"
    at: int = _at()


@node
class Logical:
    """operator: AND OR; two operands or more."""

    operator: str
    operands: tuple["Expression", ...]
    at: int = _at()


@node
class Coalesce:
    """`a ?? b ?? …`: the first that is defined."""

    operands: tuple["Expression", ...]
    at: int = _at()


@node
class Conditional:
    """`condition ? then : otherwise`"""

    condition: "Expression"
    then: "Expression"
    otherwise: "Expression"
    at: int = _at()


@node
class In:
    """`operand [NOT] IN (choices)`"""

    operand: "Expression"
    choices: tuple["Expression", ...]
    negated: bool = False
    at: int = _at()


@node
class Between:
    """`operand [NOT] BETWEEN low AND high`"""

    operand: "Expression"
    low: "Expression"
    high: "Expression"
    negated: bool = False
    at: int = _at()


@node
class Like:
    """`operand [NOT] LIKE pattern [ESCAPE escape]`"""

    operand: "Expression"
    pattern: "Expression"
    escape: "Expression | None" = None
    negated: bool = False
    at: int = _at()


@node
class Call:
    """A function by its name in capitals, and as many arguments as it takes."""

    name: str
    arguments: tuple["Expression", ...]
    at: int = _at()


@node
class Aggregate:
    """name: COUNT SUM AVG MIN MAX"""

    name: str
    argument: "Expression"
    at: int = _at()


@node
class ObjectLiteral:
    items: tuple[tuple[str, "Expression"], ...]
    at: int = _at()


@node
class ArrayLiteral:
    items: tuple["Expression", ...]
    at: int = _at()


@node
class Exists:
    """`EXISTS(query)`: whether it has a result that is defined."""

    query: "Query"
    at: int = _at()


@node
class ArraySubquery:
    """`ARRAY(query)`: all its results."""

    query: "Query"
    at: int = _at()


@node
class ScalarSubquery:
    """`(query)`: its only result, or undefined."""

    query: "Query"
    at: int = _at()


Expression: TypeAlias = Union[  # noqa: UP007  # nineteen lines of | would not read better
    Literal,
    Parameter,
    Path,
    Access,
    Unary,
    Binary,
    Logical,
    Coalesce,
    Conditional,
    In,
    Between,
    Like,
    Call,
    Aggregate,
    ObjectLiteral,
    ArrayLiteral,
    Exists,
    ArraySubquery,
    ScalarSubquery,
]


# --- queries --------------------------------------------------------------------------------------------------------


@node
class Star:
    """`SELECT *`"""

    at: int = _at()


@node
class Fields:
    """`SELECT a, b AS x`: the names of the properties, and what they hold."""

    items: tuple[tuple[str, Expression], ...]
    at: int = _at()


@node
class Single:
    """`SELECT VALUE expression`"""

    expression: Expression
    at: int = _at()


Projection = Star | Fields | Single


@node
class Within:
    """`FROM c`, `FROM root r`, `FROM c.address a`: the one value at a path, unless it is undefined.

    The name that the outermost FROM starts from means every document of the collection in turn, as in Each.
    """

    path: Path
    alias: str
    at: int = _at()


@node
class Each:
    """`x IN c.items`: every element of the array at a path."""

    path: Path
    alias: str
    at: int = _at()


@node
class Derived:
    """`(query) AS x`: every result of a query. `x IN (query)`, with `each`: every element of every result."""

    query: "Query"
    alias: str
    each: bool = False
    at: int = _at()


Source = Within | Each | Derived


@node
class Order:
    """One part of ORDER BY."""

    expression: Expression
    descending: bool = False


@node
class Query:
    """`sources` are FROM and every JOIN, in this order; empty without FROM.

    `top`, `offset` and `limit` are Literals of integers or Parameters. `parameters` and `text` are set for the
    outermost query only: every parameter where it first stands, and what was parsed.
    """

    projection: Projection
    sources: tuple[Source, ...] = ()
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    order_by: tuple[Order, ...] = ()
    distinct: bool = False
    top: Literal | Parameter | None = None
    offset: Literal | Parameter | None = None
    limit: Literal | Parameter | None = None
    parameters: tuple[Parameter, ...] = field(default=(), compare=False, repr=False)
    text: str = field(default="", compare=False, repr=False)
    at: int = _at()


_PLACE = {each.name: place for place, each in enumerate(fields(Query))}
_values = attrgetter(*_PLACE)


def changed(query: Query, **changes: object) -> Query:
    """The query with other values in some of its fields: dataclasses.replace takes twice as long."""
    values = list(_values(query))
    for name, value in changes.items():
        values[_PLACE[name]] = value
    return Query(*values)


# --- walking --------------------------------------------------------------------------------------------------------


# By type, for speed: a match statement tries its cases one after the other.
_CHILDREN: dict[type, Callable[[Any], tuple["Expression", ...]]] = {
    Access: lambda node: (node.target, node.key),
    Unary: lambda node: (node.operand,),
    Binary: lambda node: (node.left, node.right),
    Logical: lambda node: node.operands,
    Coalesce: lambda node: node.operands,
    Conditional: lambda node: (node.condition, node.then, node.otherwise),
    In: lambda node: (node.operand, *node.choices),
    Between: lambda node: (node.operand, node.low, node.high),
    Like: lambda node: tuple(part for part in (node.operand, node.pattern, node.escape) if part is not None),
    Call: lambda node: node.arguments,
    Aggregate: lambda node: (node.argument,),
    ObjectLiteral: lambda node: tuple(value for _, value in node.items),
    ArrayLiteral: lambda node: node.items,
}


def children(node: Expression) -> tuple[Expression, ...]:
    """The expressions that an expression is made of; those inside subqueries are not."""
    inside = _CHILDREN.get(type(node))
    return inside(node) if inside is not None else ()


def walk(node: Expression) -> Iterator[Expression]:
    """An expression and every expression in it, from the outside in; those inside subqueries are not."""
    waiting = [node]
    while waiting:
        here = waiting.pop()
        yield here
        waiting.extend(reversed(children(here)))
