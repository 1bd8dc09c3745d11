"""The same commands on a server."""

import json
from pathlib import Path

from tests.cli.conftest import Run
from ttlstore.testing import FakeClock


def test_every_kind_of_command_works_on_postgresql(postgres_url: str, db: str, run: Run, clock: FakeClock) -> None:
    assert "is up to date" in run("init", postgres_url).stdout
    run("create", postgres_url, "carts", "--ttl", "1h")
    run("import", postgres_url, "carts", stdin='{"id": "a", "n": 1}\n{"id": "b", "n": 2, "ttl": 60}\n')
    assert json.loads(run("get", postgres_url, "carts", "a").stdout)["n"] == 1
    run("index", "add", postgres_url, "carts", "/n")
    assert "hides 0 documents" in run("ttl", postgres_url, "carts", "2h", "--yes").stderr
    found = run(
        "query", postgres_url, "carts", "SELECT VALUE c.id FROM c WHERE c.n = @n", "--param", "n=2", "--format", "json"
    )
    assert json.loads(found.stdout) == ["b"]
    clock.advance(60)
    assert [line.split()[0] for line in run("ls", postgres_url, "carts").stdout.splitlines()[2:]] == ["a"]
    assert "'b'" in run("recover", postgres_url, "carts", "b").stdout
    clock.advance(60)
    info = json.loads(run("info", postgres_url, "--format", "json").stdout)
    assert info["engine"].startswith("PostgreSQL ")
    assert (info["live_documents"], info["waiting_documents"], info["lag_seconds"]) == (1, 1, 0)
    assert json.loads(run("stats", postgres_url, "--at", "+2h", "--format", "json").stdout)["live_documents"] == 0
    assert run("vacuum", postgres_url).stdout.startswith("deleted 1 expired document in ")
    assert run("check", postgres_url).stdout.endswith(" is sound\n")
    run("export", postgres_url, "carts", "carts.jsonl")
    run("import", db, "carts", "carts.jsonl")
    assert json.loads(run("get", db, "carts", "a").stdout)["n"] == 1
    assert "pg_dump" in run("backup", postgres_url, "copy.db", code=1).stderr
    assert not Path("copy.db").exists()
    assert run("migrate", "current", postgres_url).stdout.endswith("(head)\n")
    run("drop", postgres_url, "carts", "--yes")
