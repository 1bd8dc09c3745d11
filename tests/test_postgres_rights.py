"""What a role lacks to open a store on PostgreSQL is named, and the way to grant it works."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import ttlstore
from tests.postgres import Server
from ttlstore import CannotOpen, StoreReadOnly


class Guest(NamedTuple):
    """A role that may do nothing yet with a schema."""

    role: str
    schema: str
    url: str


@pytest.fixture
def guest(postgres: Server) -> Iterator[Guest]:
    schema = postgres.new_schema()
    role = f"guest of {schema}"
    postgres.admin.execute(f'CREATE ROLE "{role}" LOGIN')
    try:
        yield Guest(role, schema, f"{postgres.store_url(schema)}&user={role.replace(' ', '%20')}")
    finally:
        postgres.admin.execute(f'DROP OWNED BY "{role}" CASCADE')
        postgres.admin.execute(f'DROP ROLE "{role}"')


@pytest.fixture
def kept(postgres: Server, guest: Guest) -> None:
    """The schema of the guest has a store of another role's, with a document."""
    with ttlstore.open(postgres.store_url(guest.schema), vacuum=False) as store:
        store.create_collection("c").create({"id": "a"})


def grant_named_by(error: CannotOpen) -> str:
    return "GRANT " + str(error).partition("GRANT ")[2]


@pytest.mark.usefixtures("kept")
def test_who_may_not_read_a_store_is_told_what_to_grant(postgres: Server, guest: Guest) -> None:
    for lacking in ("may not use the schema", "may not read alembic_version, collections, documents"):
        with pytest.raises(CannotOpen, match=lacking) as refused:
            ttlstore.open(guest.url, vacuum=False)
        with pytest.raises(CannotOpen, match=lacking) as refused:
            ttlstore.open(guest.url, read_only=True)
        postgres.admin.execute(grant_named_by(refused.value).encode())
    with ttlstore.open(guest.url, read_only=True) as store:
        assert [document["id"] for document in store.collection("c")] == ["a"]


@pytest.mark.usefixtures("kept")
def test_who_may_only_read_is_told_so_when_it_writes(postgres: Server, guest: Guest) -> None:
    postgres.admin.execute(f'GRANT USAGE ON SCHEMA {guest.schema} TO "{guest.role}"')
    postgres.admin.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA {guest.schema} TO "{guest.role}"')
    with ttlstore.open(guest.url, vacuum=False) as store:
        assert store.collection("c").read("a")
        with pytest.raises(StoreReadOnly, match="cannot be written: permission denied for table collections"):
            store.collection("c").touch("a")


@pytest.mark.usefixtures("kept")
def test_an_application_needs_no_more_than_the_docs_say(postgres: Server, guest: Guest) -> None:
    page = (Path(__file__).parent.parent / "docs" / "postgresql.md").read_text(encoding="utf-8")
    grants = [line for line in page.splitlines() if line.startswith("GRANT ") and line.endswith(" TO app;")]
    assert len(grants) == 3
    for grant in grants:
        said = grant.replace("SCHEMA ttlstore TO app", f'SCHEMA {guest.schema} TO "{guest.role}"')
        postgres.admin.execute(said.encode())
    with ttlstore.open(guest.url, vacuum=False) as store:
        made = store.create_collection("made", default_ttl=1)
        assert made.create_many({} for _ in range(100)) == 100
        made.touch(made.upsert({"id": "a"})["id"])
        made.delete(made.create({})["id"])
        made.configure(default_ttl=60)
        store.delete_collection("c")
        assert store.vacuum().deleted == 1


@pytest.mark.parametrize(
    ("rights", "lacking"),
    [
        (None, "permission denied for database"),
        ("", "may not use the schema"),
        ("USAGE", "permission denied for schema"),
    ],
)
def test_who_may_not_make_a_store_is_told_what_it_needs(
    postgres: Server, guest: Guest, rights: str | None, lacking: str
) -> None:
    """`rights` on a schema that is there; None: it is not."""
    if rights is not None:
        postgres.admin.execute(f"CREATE SCHEMA {guest.schema}")
    if rights:
        postgres.admin.execute(f'GRANT {rights} ON SCHEMA {guest.schema} TO "{guest.role}"')
    with pytest.raises(CannotOpen, match=f"{lacking}.*GRANT USAGE"):
        ttlstore.open(guest.url, vacuum=False)
    postgres.admin.execute(f"CREATE SCHEMA IF NOT EXISTS {guest.schema}")
    postgres.admin.execute(f'GRANT USAGE, CREATE ON SCHEMA {guest.schema} TO "{guest.role}"')
    with ttlstore.open(guest.url, vacuum=False) as store:
        assert store.create_collection("c").create({"id": "a"})["id"] == "a"


def test_who_may_make_the_schema_in_the_database_makes_it(postgres: Server, guest: Guest) -> None:
    with pytest.raises(CannotOpen, match=r"permission denied for database .*GRANT CREATE ON DATABASE"):
        ttlstore.open(guest.url, vacuum=False)
    postgres.admin.execute(f'GRANT CREATE ON DATABASE {postgres.admin.info.dbname} TO "{guest.role}"')
    with ttlstore.open(guest.url, vacuum=False) as store:
        assert store.list_collections() == []
