"""Writing rows of a SQLite file anew, so that they fill their pages."""

import sqlite3

from ttlstore.schema import documents

PACKED_BYTES = 512 * 1024  # of documents at most: large ones have pages of their own, which are freed with them

_COLUMNS = ", ".join(column.name for column in documents.c if column.computed is None)
_BETWEEN = "FROM documents WHERE seq BETWEEN ? AND ?"


def pack(raw: sqlite3.Connection, first: int, last: int) -> int:
    """Delete the rows between two places and store them again as they are; tells how many.

    Deleted all at once they leave no page behind, and stored in their order they fill the new ones. Copied by SQLite,
    from table to table: whatever is in them comes back to the bit.
    """
    raw.execute(f"CREATE TEMP TABLE IF NOT EXISTS packed AS SELECT {_COLUMNS} FROM documents WHERE false")
    raw.execute("BEGIN IMMEDIATE")
    try:
        rows, size = raw.execute(f"SELECT count(*), coalesce(sum(size), 0) {_BETWEEN}", (first, last)).fetchone()
        if not rows or size > PACKED_BYTES:
            return 0
        raw.execute(f"INSERT INTO packed SELECT {_COLUMNS} {_BETWEEN}", (first, last))
        raw.execute(f"DELETE {_BETWEEN}", (first, last))
        raw.execute(f"INSERT INTO documents ({_COLUMNS}) SELECT {_COLUMNS} FROM packed ORDER BY seq")
        raw.execute("DELETE FROM packed")
        raw.execute("COMMIT")
    finally:
        if raw.in_transaction:
            raw.execute("ROLLBACK")
    return int(rows)
