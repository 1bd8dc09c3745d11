"""Input that nobody means well with."""

import random
from typing import Any

STRINGS = [
    "",
    " ",
    "'",
    '"',
    "\\",
    "`",
    "]",
    "a\0b",
    "\ud800",
    "\udfff x",
    "\ufeff",
    "\u202e",
    "é",
    "e\u0301",
    "\U0001d4b3" * 300,
    "x" * 255,
    "x" * 256,
    "x" * 1024,
    "x" * 20_000,
    "'; DROP TABLE documents; --",
    '"; DROP TABLE documents; --',
    "' OR '1'='1",
    "1 UNION SELECT body FROM documents",
    "c.id FROM documents; DELETE FROM documents",
    "$.id') OR 1=1 --",
    "../../../etc/passwd",
    "/etc/passwd",
    "..",
    "/",
    "//",
    "/id",
    "/id/",
    "/~2",
    "/~",
    "/a/b/c",
    "/a/" + "b/" * 300 + "c",
    "/" + "9" * 5000,
    "/-",
    "/0",
    "/tags/1",
    "/_ts",
    "/ttl",
    "%s%s%n",
    "{0}",
    "${x}",
    "null",
    "NaN",
    "-1",
    "1e999",
    "?1",
    ":a",
    "@p",
    "--",
    "/*",
    "file:///etc/passwd?mode=rwc",
    "sqlite_master",
    "c",
    "id",
    "_etag",
    "\n",
    "\r\n",
    "\x1b[2J",
    "a",
    "b",
]

NUMBERS: list[Any] = [0, -1, 1, 2, 10, 2**31 - 1, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**5000]
FLOATS: list[Any] = [0.0, -0.0, 1.5, 1e308, -1e308, 5e-324, float("inf"), float("-inf"), float("nan")]
OTHERS: list[Any] = [None, True, False, b"bytes", (1, 2), {1, 2}, object(), Exception, lambda: None, 1j]

# What queries are made of, so that many of them are nearly right.
WORDS = [
    "SELECT",
    "*",
    "VALUE",
    "TOP",
    "1",
    "DISTINCT",
    "c",
    "c.id",
    "c.n",
    "c.tags",
    "c['id']",
    'c["n"]',
    "c.a.b",
    "FROM",
    "WHERE",
    "AND",
    "OR",
    "NOT",
    "IN",
    "BETWEEN",
    "LIKE",
    "ESCAPE",
    "IS",
    "NULL",
    "EXISTS",
    "ARRAY",
    "ORDER",
    "BY",
    "GROUP",
    "OFFSET",
    "LIMIT",
    "ASC",
    "DESC",
    "JOIN",
    "AS",
    "t",
    ",",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    ":",
    "=",
    "!=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "||",
    "??",
    "?",
    "'a'",
    '"a"',
    "'it''s'",
    "1",
    "0",
    "-1",
    "1.5",
    "1e999",
    "99999999999999999999",
    "true",
    "false",
    "null",
    "undefined",
    "@p",
    "@q",
    "COUNT(1)",
    "SUM(c.n)",
    "MIN(c.n)",
    "CONTAINS(c.id,'a')",
    "STARTSWITH",
    "UPPER(",
    "LENGTH(",
    "ARRAY_CONTAINS(",
    "udf.x(",
    ";",
    "--",
    "/*",
    "*/",
    "\\",
    "'",
    '"',
    "`",
    "$",
    "#",
    "~",
    "^",
    "&",
    "|",
]


def string(chance: random.Random) -> str:
    if chance.random() < 0.7:
        return chance.choice(STRINGS)
    return "".join(
        chr(chance.choice([chance.randrange(128), chance.randrange(0x11000)])) for _ in range(chance.randrange(9))
    )


def value(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.random()
    if kind < 0.4:
        return string(chance)
    if kind < 0.65:
        return chance.choice(NUMBERS + FLOATS)
    if kind < 0.75:
        return chance.choice(OTHERS)
    if depth > 3:
        return []
    if kind < 0.87:
        return [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {name(chance): value(chance, depth + 1) for _ in range(chance.randrange(4))}


def name(chance: random.Random) -> Any:
    return chance.choice(NUMBERS[:4] + OTHERS[:3]) if chance.random() < 0.05 else string(chance)


def document(chance: random.Random) -> Any:
    if chance.random() < 0.05:
        return value(chance)
    made: dict[Any, Any] = {"id": chance.choice(["a", "b", "c"])} if chance.random() < 0.7 else {"id": value(chance)}
    if chance.random() < 0.4:
        made["ttl"] = value(chance) if chance.random() < 0.5 else chance.choice([1, -1, 60])
    made.update({name(chance): value(chance) for _ in range(chance.randrange(3))})
    return made


def patch(chance: random.Random) -> Any:
    if chance.random() < 0.1:
        return value(chance)
    operations = []
    for _ in range(chance.randrange(1, 4)):
        operation: dict[Any, Any] = {
            "op": chance.choice(["set", "add", "replace", "remove", "incr", "move", string(chance)]),
            "path": chance.choice(["/n", "/tags/0", "/tags/-", "/ttl", string(chance), value(chance)]),
        }
        if operation["op"] == "move":
            operation["from"] = chance.choice(["/n", "/tags", string(chance)])
        elif operation["op"] != "remove":
            operation["value"] = value(chance)
        operations.append(operation)
    return operations


def query(chance: random.Random) -> Any:
    kind = chance.random()
    if kind < 0.1:
        return value(chance)
    if kind < 0.4:
        column, test = chance.choice(["c.id", "c.n", "c.tags", "*"]), chance.choice(WORDS)
        return f"SELECT {column} FROM c WHERE c.n {test} {chance.choice(WORDS)}"
    if kind < 0.5:
        return "(" * chance.choice([1, 50, 5000]) + "1" + ")" * chance.choice([1, 50, 5000])
    return " ".join(chance.choice(WORDS) for _ in range(chance.randrange(1, 14)))


def parameters(chance: random.Random) -> Any:
    if chance.random() < 0.2:
        return value(chance)
    return {chance.choice(["p", "q", "@p", string(chance)]): value(chance) for _ in range(chance.randrange(3))}


def line(chance: random.Random) -> bytes:
    """Of a file to import."""
    kind = chance.random()
    if kind < 0.3:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(30)))
    if kind < 0.6:
        return chance.choice([b"{}", b"[]", b'{"id": "x"', b'{"id": 1}', b'{"id": "x", "ttl": 0}', b"{" * 3000])
    return b'{"id": "imported", "text": "%d"}' % chance.randrange(100)
