"""The contract as a plain dict: what a store must show, whatever happened to it."""

from typing import Any


class Row:
    """A document of the model: what was written, when (milliseconds), and under which etag."""

    def __init__(self, document: dict[str, Any], ts: int, etag: str) -> None:
        self.document = document
        self.ts = ts
        self.etag = etag

    def shown(self) -> dict[str, Any]:
        return {**self.document, "_ts": self.ts // 1000, "_etag": self.etag}


class Model:
    """The contract, spelled out: rows are never deleted by expiry, and looked at through `live` alone."""

    def __init__(self) -> None:
        self.default_ttl: dict[str, int | None] = {}
        self.rows: dict[str, dict[str, Row]] = {}

    def live(self, name: str, now: int) -> dict[str, Row]:
        default = self.default_ttl[name]

        def is_live(row: Row) -> bool:
            if default is None:
                return True
            effective: int = row.document.get("ttl", default)
            return effective == -1 or row.ts + effective * 1000 > now

        return {id: row for id, row in self.rows[name].items() if is_live(row)}
