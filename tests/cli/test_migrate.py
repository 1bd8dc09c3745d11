import sqlite3
from pathlib import Path

from tests.cli.conftest import Run
from ttlstore.schema import HEAD


def test_migrate_current_names_the_revision(db: str, run: Run) -> None:
    assert run("migrate", "current", db).stdout == f"{HEAD} (head)\n"


def test_migrate_history_begins_with_the_newest(db: str, run: Run) -> None:
    lines = run("migrate", "history").stdout.splitlines()[2:]
    assert lines[0].startswith(f"{HEAD} (head)")
    assert lines[-1].startswith("0001")


def test_migrate_goes_down_and_up_again(db: str, run: Run) -> None:
    assert run("migrate", "downgrade", db, "base", "--yes").stdout == f"app.db: {HEAD} (head) -> base\n"
    assert run("migrate", "upgrade", db).stdout == f"app.db: base -> {HEAD} (head)\n"
    assert run("check", db).stdout == "app.db is sound\n"


def test_migrate_downgrade_asks_first(db: str, run: Run) -> None:
    refused = run("migrate", "downgrade", db, "base", stdin="n\n", code=1)
    assert "lose every collection and document?" in refused.stderr
    assert run("migrate", "current", db).stdout == f"{HEAD} (head)\n"


def test_migrate_to_an_unknown_revision_is_refused_by_its_name(db: str, run: Run) -> None:
    for command in (("upgrade",), ("downgrade", "--yes"), ("upgrade", "--sql")):
        refused = run("migrate", *command, db, "9999", code=1)
        assert refused.stderr.startswith("Error: there is no revision '9999': it is head, base or one of ")


def test_migrate_leaves_a_store_of_a_newer_version_alone(db: str, run: Run) -> None:
    newer = sqlite3.connect(db, isolation_level=None)
    newer.execute("UPDATE alembic_version SET version_num = 'f00d'")
    newer.close()
    for command in (("upgrade",), ("upgrade", "--sql"), ("downgrade", "--yes")):
        refused = run("migrate", *command, db, "base", code=1)
        assert "written by a newer version of ttlstore" in refused.stderr
    assert run("migrate", "current", db).stdout == "f00d\n"


def test_the_sql_of_a_migration_does_what_the_migration_does(db: str, run: Run) -> None:
    def schema() -> list[tuple[str, ...]]:
        raw = sqlite3.connect(db, isolation_level=None)
        try:
            return raw.execute("SELECT type, name, tbl_name FROM sqlite_master ORDER BY name").fetchall()
        finally:
            raw.close()

    def run_script(script: str) -> None:
        raw = sqlite3.connect(db, isolation_level=None)
        raw.executescript(script)
        raw.close()

    migrated = schema()
    run_script(run("migrate", "downgrade", db, "base", "--sql").stdout)
    assert run("migrate", "current", db).stdout == "base\n"
    run_script(
        run("migrate", "upgrade", db, "--sql").stdout.replace(
            "CREATE TABLE alembic_version", "CREATE TABLE IF NOT EXISTS alembic_version"
        )
    )
    assert schema() == migrated
    assert run("check", db).stdout == "app.db is sound\n"


def test_sql_changes_nothing(db: str, run: Run) -> None:
    script = run("migrate", "downgrade", db, "base", "--sql").stdout
    assert script.startswith("BEGIN;")
    assert script.endswith("COMMIT;\n")
    assert run("migrate", "current", db).stdout == f"{HEAD} (head)\n"


def test_a_migration_that_changes_nothing_says_so(db: str, run: Run) -> None:
    assert run("migrate", "upgrade", db).stdout == f"app.db is at {HEAD} (head) already\n"
    assert run("migrate", "downgrade", db, "head", "--yes").stdout == f"app.db is at {HEAD} (head) already\n"


def test_a_migration_in_the_wrong_direction_is_refused(db: str, run: Run) -> None:
    refused = run("migrate", "upgrade", db, "base", code=1).stderr
    assert refused == f"Error: no way up leads from {HEAD}, where app.db stands, to base: downgrade it instead\n"
    run("migrate", "downgrade", db, "base", "--yes")
    refused = run("migrate", "downgrade", db, "0001", code=1).stderr  # before it asks
    assert refused == "Error: no way down leads from base, where app.db stands, to 0001: upgrade it instead\n"


def test_the_sql_for_a_store_that_is_not_there_makes_one(db: str, run: Run) -> None:
    script = run("migrate", "upgrade", "new.db", "--sql").stdout
    assert not Path("new.db").exists()
    by_hand = sqlite3.connect("new.db", isolation_level=None)
    by_hand.executescript(script)
    by_hand.close()
    assert run("migrate", "current", "new.db").stdout == f"{HEAD} (head)\n"
    assert run("check", "new.db").stdout == "new.db is sound\n"
