r"""JSON in PostgreSQL: `json` and not `jsonb`, for two reasons.

Numbers: `jsonb` forgets how a number was written, and 1e18 is another number as an integer than as a float near it.
Numbers are compared as `numeric`, exactly; floats that are whole and beyond 2**53 are taken for what they stand for.

NUL: no text of PostgreSQL's holds it. A body keeps it as the escape \u0000, and where one looks into the body, NUL is
the character 1 and a "0", and the character 1 is itself and a "1". That keeps the order of all strings.

Long strings: an entry of an index has no room for them. It holds how they start, and what is compared with a string
shorter than that compares with the start as with the whole. Last in an index is the place in the collection, by which
documents of one value are in order; but those with a long string at its last path all have the same place after all
others. So its order is the order of all documents, only those stand side by side, and are sorted among themselves.
"""

from collections.abc import Sequence
from functools import lru_cache

from ttlstore.engine.json import KEY_CHARACTERS, Operator, Path, Rank, are_text, is_short
from ttlstore.engine.postgres.values import FIRST_INEXACT, PAST_INTEGERS
from ttlstore.schema import documents

_BODY = documents.c.body.name  # without the table, which the expressions of an index may not name
# An escape begins after an even number of backslashes. All is written as E'', which means the same whatever
# standard_conforming_strings is: the server runs an index's functions in sessions of its own.
_MARKED = rf"regexp_replace({_BODY}, E'(?<!\\\\)((\\\\\\\\)*\\\\u000)([01])', E'\\11\\3', 'g')"
_JSON = rf"(CASE WHEN strpos({_BODY}, E'\\u000') = 0 THEN {_BODY} ELSE {_MARKED} END)::json"
# By the first character, which tells the type of JSON that has no space before it.
_QUOTATION_MARK = ord('"')
_RANKS = " ".join(
    f"WHEN {ord(first):d} THEN {rank:d}"
    for first, rank in {
        '"': Rank.STRING,
        "n": Rank.NULL,
        "f": Rank.FALSE,
        "t": Rank.TRUE,
        "[": Rank.ARRAY,
        "{": Rank.OBJECT,
    }.items()
)
_PARAMETERS = {
    Rank.NUMBER: "%s::numeric",
    Rank.STRING: r"""replace(%s::text, E'\x01', E'\x011') COLLATE "C" """.strip(),
}
_START = f"left({_PARAMETERS[Rank.STRING]}, {KEY_CHARACTERS:d})"
# What holds of the starts of two strings, if the other holds of the strings.
_OF_STARTS: dict[str, str] = {"=": "=", "<": "<=", "<=": "<=", ">": ">=", ">=": ">="}
# Where floats begin that stand for another integer than the one they are written as, and where they end as 64 bits do:
# below zero, and above.
_INTEGERS = f"{-PAST_INTEGERS}, {1 - FIRST_INEXACT}, {FIRST_INEXACT}, {PAST_INTEGERS}"
_KEY_TYPES = ("integer", "numeric", "text")
_SEQ = documents.c.seq.name
_LAST_PLACE = 2**63 - 1
_QUOTE = "'"
_BY_CODE_POINT = ' COLLATE "C"'
MAX_KEYS = 32  # of an index, for PostgreSQL
CACHED_PATHS = 1024  # spelled out: a few kilobytes each


class PostgresJson:
    """The expressions for PostgreSQL."""

    placeholder: str = "%s"
    shortens: bool = True
    advised: bool = False
    seeks_rows: bool = True

    def reaches(self, path: Path) -> bool:
        return is_short(path) and are_text(path)

    def is_a(self, path: Path, ranks: tuple[Rank, ...], *, indexed: bool) -> str:
        return f"{self._keys(path)[0]} IN ({', '.join(f'{rank:d}' for rank in ranks)})"

    def compare(self, path: Path, rank: Rank, operator: Operator, *, indexed: bool, long: bool = False) -> str:
        of_rank, number, start, whole = self._keys(path)
        other = f" AND {_other(rank, number, start)}" if indexed and (rank is Rank.STRING or operator == "=") else ""
        if not long:
            compared = f"{number if rank is Rank.NUMBER else start} {operator} {_PARAMETERS[rank]}"
        elif operator == "<>":
            compared = f"({start} <> {_START} OR {whole} <> {_PARAMETERS[rank]})"
        else:
            compared = f"{start} {_OF_STARTS[operator]} {_START} AND {whole} {operator} {_PARAMETERS[rank]}"
        return f"({of_rank} = {rank:d}{other} AND {compared})"

    def equals_plain(self, path: Path, *, long: bool = False) -> str:
        return self.compare(path, Rank.STRING, "=", indexed=False, long=long)

    def among(self, path: Path, rank: Rank, count: int, *, indexed: bool, long: bool = False) -> str:
        of_rank, number, start, whole = self._keys(path)
        other = f" AND {_other(rank, number, start)}" if indexed and rank is Rank.STRING else ""
        several = ", ".join([_PARAMETERS[rank]] * count)
        if not long:
            compared = f"{number if rank is Rank.NUMBER else start} IN ({several})"
        else:
            compared = f"{start} IN ({', '.join([_START] * count)}) AND {whole} IN ({several})"
        return f"({of_rank} = {rank:d}{other} AND {compared})"

    def keys(self, path: Path, *, last: bool = False) -> tuple[str, ...]:
        of_rank, number, start, whole = self._keys(path)
        return (of_rank, number, start, self.place(path), whole) if last else (of_rank, number, start, whole)

    def keys_alone(self, path: Path) -> tuple[str, ...]:
        of_rank, number, _, whole = self._keys(path)
        return of_rank, number, whole

    def place(self, path: Path) -> str:
        value = _value(path)
        is_long = f"char_length({value}) >= {KEY_CHARACTERS + 2:d} AND ascii({value}) = {_QUOTATION_MARK:d}"
        return f"(CASE WHEN {is_long} THEN {_LAST_PLACE:d} ELSE {_SEQ} END)"

    @staticmethod
    @lru_cache(maxsize=CACHED_PATHS)
    def _keys(path: Path) -> tuple[str, str, str, str]:
        value = _value(path)
        first = f"ascii({value})"
        whole = f"(CASE {first} WHEN {_QUOTATION_MARK:d} THEN {_json(path)} #>> '{{}}' ELSE '' END COLLATE \"C\")"
        return (
            f"(CASE coalesce({first}, 0) WHEN 0 THEN {Rank.UNDEFINED:d} {_RANKS} ELSE {Rank.NUMBER:d} END)",
            f"(CASE WHEN strpos('-0123456789', left({value}, 1)) > 0 THEN {_number(value)} ELSE 0 END)",
            f"left({whole}, {KEY_CHARACTERS:d})",
            whole,
        )

    def text(self, column: str) -> str:
        return f'({column} COLLATE "C")'

    def use(self, index: str | None) -> str:
        return ""  # PostgreSQL keeps statistics, and takes no advice

    def use_key(self) -> str:
        return ""

    def gather(self, collection: int, found: Sequence[tuple[str, str]]) -> tuple[str, str]:
        return "", f"({' OR '.join(condition for _, condition in found)})"

    def indexed_keys(self, name: str, paths: tuple[Path, ...]) -> tuple[list[str], list[str]]:
        """Each behind the name of a function, which the server puts in the place of its name when it plans.

        Before PostgreSQL 18 all the keys of an index had to fit into a page of its catalogue: two short paths did.
        """
        keys = [key for path in paths for key in zip(_KEY_TYPES, self._keys(path)[:-1], strict=True)]
        keys.append(("bigint", self.place(paths[-1])))
        functions = [
            f"CREATE OR REPLACE FUNCTION {name}_{number}({_BODY} text, {_SEQ} bigint) RETURNS {of_type} LANGUAGE sql "
            f"IMMUTABLE PARALLEL SAFE AS '{f'SELECT {key}'.replace(_QUOTE, 2 * _QUOTE)}'"
            for number, (of_type, key) in enumerate(keys)
        ]
        calls = [
            f"{name}_{number}({_BODY}, {_SEQ}){_BY_CODE_POINT if of_type == 'text' else ''}"
            for number, (of_type, _) in enumerate(keys)
        ]
        return calls, functions

    def without_index(self, name: str) -> list[str]:
        functions = ", ".join(f"{name}_{number}(text, bigint)" for number in range(MAX_KEYS))
        return [f"DROP FUNCTION IF EXISTS {functions}"]


def _other(rank: Rank, number: str, start: str) -> str:
    """What holds of all values of the rank, and leaves no gap in the keys of an index before those that follow."""
    return f"{start} = ''" if rank is Rank.NUMBER else f"{number} = 0"


def _json(path: Path) -> str:
    return f"({_JSON}{''.join(map(_step, path))})"


def _value(path: Path) -> str:
    return f"{_json(path)}::text"


def _step(part: str | int) -> str:
    """One step down; of a wrong kind, it leads nowhere."""
    if isinstance(part, int):
        return f" -> {part:d}"
    marked = part.replace("\x01", "\x011").replace("\0", "\x010")
    return " -> E'" + marked.replace("\\", r"\\").replace("'", "''").replace("%", "%%") + "'"


def _number(text: str) -> str:
    a_float = f"substring({text} FROM '.*[.e].*')::float8"
    is_integer = f"width_bucket({a_float}, '{{{_INTEGERS}}}'::float8[]) IN (1, 3)"
    return f"CASE WHEN {is_integer} THEN {text}::float8::bigint::numeric ELSE {text}::numeric END"
