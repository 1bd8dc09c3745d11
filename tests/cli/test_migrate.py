from collections.abc import Callable

from tests.cli.conftest import ByHand, Run, named
from ttlstore.schema import HEAD


def test_migrate_current_names_the_revision(db: str, run: Run) -> None:
    assert run("migrate", "current", db).stdout == f"{HEAD} (head)\n"


def test_migrate_history_begins_with_the_newest(db: str, run: Run) -> None:
    lines = run("migrate", "history").stdout.splitlines()[2:]
    assert lines[0].startswith(f"{HEAD} (head)")
    assert lines[-1].startswith("0001")


def test_migrate_goes_down_and_up_again(db: str, run: Run) -> None:
    assert run("migrate", "downgrade", db, "base", "--yes").stdout == f"{named(db)}: {HEAD} (head) -> base\n"
    assert run("migrate", "upgrade", db).stdout == f"{named(db)}: base -> {HEAD} (head)\n"
    assert run("check", db).stdout == f"{named(db)} is sound\n"


def test_migrate_downgrade_asks_first(db: str, run: Run) -> None:
    refused = run("migrate", "downgrade", db, "base", stdin="n\n", code=1)
    assert "lose every collection and document?" in refused.stderr
    assert run("migrate", "current", db).stdout == f"{HEAD} (head)\n"


def test_migrate_to_an_unknown_revision_is_refused_by_its_name(db: str, run: Run) -> None:
    for command in (("upgrade",), ("downgrade", "--yes"), ("upgrade", "--sql")):
        refused = run("migrate", *command, db, "9999", code=1)
        assert refused.stderr.startswith("Error: there is no revision '9999': it is head, base or one of ")


def test_migrate_leaves_a_store_of_a_newer_version_alone(db: str, run: Run, by_hand: ByHand) -> None:
    by_hand(db, "UPDATE alembic_version SET version_num = 'f00d'")
    for command in (("upgrade",), ("upgrade", "--sql"), ("downgrade", "--yes")):
        refused = run("migrate", *command, db, "base", code=1)
        assert "written by a newer version of ttlstore" in refused.stderr
    assert run("migrate", "current", db).stdout == "f00d\n"


CATALOGUE = {
    "file": "SELECT type, name, tbl_name FROM sqlite_master ORDER BY name",
    "postgres": "SELECT relkind::text, relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace "
    "ORDER BY relname",
}


def test_the_sql_of_a_migration_does_what_the_migration_does(kind: str, db: str, run: Run, by_hand: ByHand) -> None:
    migrated = by_hand(db, CATALOGUE[kind])
    by_hand(db, run("migrate", "downgrade", db, "base", "--sql").stdout)
    assert run("migrate", "current", db).stdout == "base\n"
    by_hand(
        db,
        run("migrate", "upgrade", db, "--sql").stdout.replace(
            "CREATE TABLE alembic_version", "CREATE TABLE IF NOT EXISTS alembic_version"
        ),
    )
    assert by_hand(db, CATALOGUE[kind]) == migrated
    assert run("check", db).stdout == f"{named(db)} is sound\n"


def test_sql_changes_nothing(db: str, run: Run) -> None:
    script = run("migrate", "downgrade", db, "base", "--sql").stdout
    assert script.startswith("BEGIN;")
    assert script.endswith("COMMIT;\n")
    assert run("migrate", "current", db).stdout == f"{HEAD} (head)\n"


def test_a_migration_that_changes_nothing_says_so(db: str, run: Run) -> None:
    assert run("migrate", "upgrade", db).stdout == f"{named(db)} is at {HEAD} (head) already\n"
    assert run("migrate", "downgrade", db, "head", "--yes").stdout == f"{named(db)} is at {HEAD} (head) already\n"


def test_a_migration_in_the_wrong_direction_is_refused(db: str, run: Run) -> None:
    refused = run("migrate", "upgrade", db, "base", code=1).stderr
    assert refused == f"Error: no way up leads from {HEAD}, where {named(db)} stands, to base: downgrade it instead\n"
    run("migrate", "downgrade", db, "base", "--yes")
    refused = run("migrate", "downgrade", db, "0001", code=1).stderr  # before it asks
    assert refused == f"Error: no way down leads from base, where {named(db)} stands, to 0001: upgrade it instead\n"


def test_the_sql_for_a_store_that_is_not_there_makes_one(
    elsewhere: str, run: Run, by_hand: ByHand, is_made: Callable[[str], bool]
) -> None:
    script = run("migrate", "upgrade", elsewhere, "--sql").stdout
    assert not is_made(elsewhere)
    by_hand(elsewhere, script)
    assert run("migrate", "current", elsewhere).stdout == f"{HEAD} (head)\n"
    assert run("check", elsewhere).stdout == f"{named(elsewhere)} is sound\n"
