"""Which statements find a few rows: those may be found in any order, and sorted afterwards.

An index has its rows in order, and the first of many are found without a look at the others. But to have them in that
order the server works out for each what the index is sorted by, and for twenty rows that was half of its time. So a
statement that has found a few rows each time is run without that: it finds all, up to a limit. Once it has found more,
it is not run so again, as far as that is remembered.
"""

from functools import lru_cache

CACHED_STATEMENTS = 512  # as many as there are plans


@lru_cache(maxsize=CACHED_STATEMENTS)
def few_at_once(sql: str, limit: int) -> str:
    """All rows of the statement, or, if those are more than the limit, some of them."""
    # Found for themselves: a server that knows of the limit, and takes the rows for many, would rather walk the table
    # than the index until it has met as many, and the first ones may be far away.
    return f"WITH few AS MATERIALIZED ({sql}) SELECT * FROM few LIMIT {limit:d}"


class FoundFew:
    """What was learnt of statements, by all threads of an open store."""

    def __init__(self) -> None:
        self._few: set[str] = set()
        self._more: set[str] = set()

    def always(self, sql: str) -> bool:
        """Whether the statement was run, and has found a few rows every time."""
        return sql in self._few and sql not in self._more

    def learn(self, sql: str, few: bool) -> None:
        found = self._few if few else self._more
        if len(found) >= CACHED_STATEMENTS:
            found.clear()
        found.add(sql)
