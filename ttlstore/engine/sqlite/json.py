r"""JSON in SQLite, with the two traps that its functions have.

The types: `json_extract(…) = 1` is true for `true`, and an array is a string to it. So a value is a pair of
expressions, the rank of its type and then the number or string itself. An index over both answers equality, ranges
and order.

NUL: `json_extract` cuts a string at a `\u0000`. Such a string, and only such a one, takes a detour: half a surrogate
pair, which no stored document has, takes its place, and NUL comes back after the extraction. Backslashes go the same
way, so that an escaped backslash before `u0000` is not mistaken for one.
"""

from collections.abc import Sequence
from functools import lru_cache

import orjson

from ttlstore.engine.json import SEQ, Operator, Path, Rank, are_text, is_short
from ttlstore.schema import IN_ORDER, documents

_BODY = documents.c.body.name  # without the table, which the expressions of an index may not name
_TYPES = {
    Rank.NULL: ("null",),
    Rank.FALSE: ("false",),
    Rank.TRUE: ("true",),
    Rank.NUMBER: ("integer", "real"),
    Rank.STRING: ("text",),
    Rank.ARRAY: ("array",),
    Rank.OBJECT: ("object",),
}
_RANKS = " ".join(f"WHEN '{name}' THEN {rank:d}" for rank, names in _TYPES.items() for name in names)
CACHED_PATHS = 1024  # spelled out: a few kilobytes each


class SqliteJson:
    """The expressions for SQLite."""

    placeholder: str = "?"
    shortens: bool = False
    advised: bool = True
    seeks_rows: bool = False

    def reaches(self, path: Path) -> bool:
        # Not every version of SQLite finds a name with a quotation mark in it.
        return is_short(path) and are_text(path, without='"')

    def is_a(self, path: Path, ranks: tuple[Rank, ...], *, indexed: bool) -> str:
        if indexed:
            return f"{self._keys(path)[0]} IN ({', '.join(f'{rank:d}' for rank in ranks)})"
        names = [f"'{name}'" for rank in ranks for name in _TYPES.get(rank, ())]
        conditions = [f"json_type({_BODY}, {_spelled(path)}) IN ({', '.join(names)})"] if names else []
        if Rank.UNDEFINED in ranks:
            conditions.append(f"json_type({_BODY}, {_spelled(path)}) IS NULL")
        return f"({' OR '.join(conditions)})"

    def compare(self, path: Path, rank: Rank, operator: Operator, *, indexed: bool, long: bool = False) -> str:
        return self._condition(path, rank, f"{operator} ?", indexed, equality=operator == "=")

    def equals_plain(self, path: Path, *, long: bool = False) -> str:
        # As JSON: that tells the type as well, and has no NUL to stumble over.
        return f"""{_BODY} -> {_spelled(path)} = '"' || ? || '"'"""

    def among(self, path: Path, rank: Rank, count: int, *, indexed: bool, long: bool = False) -> str:
        return self._condition(path, rank, f"IN ({', '.join('?' * count)})", indexed, equality=True)

    def _condition(self, path: Path, rank: Rank, comparison: str, indexed: bool, *, equality: bool) -> str:
        of_rank, key = self._keys(path)
        if indexed:
            return f"({of_rank} = {rank:d} AND {key} {comparison})"
        of_type = self.is_a(path, (rank,), indexed=False)
        raw = f"json_extract({_BODY}, {_spelled(path)})"
        if rank is Rank.NUMBER:
            return f"({raw} {comparison} AND {of_type})"
        if equality:
            return f"({raw} {comparison} AND {of_type} AND NOT {_is_cut(path)})"
        return f"({of_type} AND {_string(path)} {comparison})"

    def keys(self, path: Path, *, last: bool = False) -> tuple[str, ...]:
        return self._keys(path)

    def keys_alone(self, path: Path) -> tuple[str, ...]:
        return self._keys(path)

    def place(self, path: Path) -> str:
        return SEQ

    @staticmethod
    @lru_cache(maxsize=CACHED_PATHS)
    def _keys(path: Path) -> tuple[str, str]:
        of_type, raw = f"json_type({_BODY}, {_spelled(path)})", f"json_extract({_BODY}, {_spelled(path)})"
        return (
            f"CASE {of_type} {_RANKS} ELSE {Rank.UNDEFINED:d} END",
            f"CASE {of_type} WHEN 'text' THEN {_string(path)} WHEN 'integer' THEN {raw} WHEN 'real' THEN {raw} "
            "ELSE 0 END",
        )

    def text(self, column: str) -> str:
        return column

    def use(self, index: str | None) -> str:
        # Without statistics SQLite believes that a collection has ten documents, and sorts rather than use an index.
        return f"INDEXED BY {index or IN_ORDER.name}"

    def use_key(self) -> str:
        return "INDEXED BY sqlite_autoindex_documents_1"  # SQLite's own name for that of the UNIQUE constraint

    def gather(self, collection: int, found: Sequence[tuple[str, str]]) -> tuple[str, str]:
        # The places of the rows, put in order, and then the rows: to sort the rows themselves takes up to seven times
        # as long. And not OR, for which SQLite, told which index to use, uses no other.
        places = " UNION ALL ".join(
            f"SELECT seq FROM documents {use} WHERE collection_id = {collection:d} AND {condition}"
            for use, condition in found
        )
        return "NOT INDEXED", f"{documents.name}.seq IN ({places})"

    def indexed_keys(self, name: str, paths: tuple[Path, ...]) -> tuple[list[str], list[str]]:
        return [key for path in paths for key in self.keys(path)], []

    def without_index(self, name: str) -> list[str]:
        return []


@lru_cache(maxsize=CACHED_PATHS)
def _spelled(path: Path) -> str:
    """The path as SQLite spells it, as a literal. Names are spelled as in the bodies: with the same escapes."""
    steps = (f"[{part:d}]" if isinstance(part, int) else f".{orjson.dumps(part).decode()}" for part in path)
    return "'" + f"${''.join(steps)}".replace("'", "''") + "'"


def _nul(path: Path) -> str:
    r"""Where the string may have a NUL; 0: nowhere. Also where it has an escaped backslash before `u0000`.

    Indexes are made of this text: another would not be found in those that are there.
    """
    return rf"instr({_BODY} -> {_spelled(path)}, '\u0000')"


def _is_cut(path: Path) -> str:
    """Whether the string has a NUL, and `json_extract` gives what comes before it."""
    # Without the escaped backslashes, a run of which is paired from its left, no other stands before `u0000`.
    return rf"instr(replace({_BODY} -> {_spelled(path)}, '\\', ''), '\u0000')"


def _string(path: Path) -> str:
    raw = f"json_extract({_BODY}, {_spelled(path)})"
    marked = rf"replace(replace({_BODY}, '\\', '\ud801'), '\u0000', '\ud800')"
    there = _spelled(path).replace(r"\\", r"\ud801").replace(r"\u0000", r"\ud800")  # names are marked like all the text
    detour = (
        f"replace(replace(json_extract({marked}, {there}), "
        r"CAST(x'EDA080' AS TEXT), char(0)), CAST(x'EDA081' AS TEXT), '\')"
    )
    return f"CASE {_nul(path)} WHEN 0 THEN {raw} ELSE {detour} END"
