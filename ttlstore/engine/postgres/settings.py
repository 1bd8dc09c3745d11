"""The settings of collections as they were last seen: to ask the server for them before each query took half its time.

They are never relied on. A statement that was planned by them has the server compare, and the answer comes with its
rows.
"""

from functools import lru_cache
from typing import Any

from ttlstore.engine import Row, Settings, SettingsChanged
from ttlstore.statements import Values

CACHED_STATEMENTS = 512  # as many as there are plans


class SeenSettings:
    """What all threads of an open store have seen."""

    def __init__(self) -> None:
        self._seen: dict[int, Settings] = {}

    def get(self, collection: int) -> Settings | None:
        return self._seen.get(collection)

    def remember(self, settings: Settings | None) -> Settings | None:
        if settings is not None:
            self._seen[settings.collection] = settings
        return settings

    def forget(self) -> None:
        """They are about to be changed here: whoever asks next should know when he asks."""
        self._seen.clear()

    def confirmed(self, answers: list[Row], planned_by: Settings) -> list[Row]:
        """The rows of a statement that was made `comparing`. Raises SettingsChanged."""
        if not answers or not answers[0][0]:
            self._seen.pop(planned_by.collection, None)
            raise SettingsChanged("the settings of the collection were changed meanwhile")
        if answers[0][1] is None:
            return []
        return [row[1:] for row in answers]


@lru_cache(maxsize=CACHED_STATEMENTS)
def comparing(sql: str, collection: int, limit: int | None = None) -> str:
    """A statement whose rows, never NULL in their first column, come after whether the settings are those expected.

    Without any, the answer comes alone; and if the collection was dropped, there is none.
    """
    # On the left there is one row, so the two can only be joined row by row, and the order of the right stays.
    limited = "" if limit is None else f" LIMIT {limit:d}"
    return (
        "SELECT indexing_mode = %s AND indexed_paths = %s, found.* "
        f"FROM collections LEFT JOIN LATERAL (SELECT * FROM ({sql}) AS every{limited}) AS found ON true "
        f"WHERE collections.id = {collection:d} AND name IS NOT NULL"
    )


def compared(planned_by: Settings, values: Values) -> tuple[Any, ...]:
    """The parameters of a statement that was made `comparing`."""
    return (planned_by.mode, planned_by.paths, *values)
