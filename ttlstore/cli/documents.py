"""Commands on one document."""

import sys
from typing import Any, TypeVar

import click

from ttlstore.cli.opening import At, opened
from ttlstore.cli.output import show_document, show_facts
from ttlstore.cli.params import TTL, at_option, collection_argument, complete_file, partition_option, store_command
from ttlstore.cli.times import format_left, format_time, in_words

T = TypeVar("T")

# What a value of the kind is for, and how it looks.
EXPECTED: dict[type, tuple[str, str]] = {
    dict: ("a document", 'a JSON object such as {"id": "c1"}'),
    list: ("a patch", 'a JSON list such as [{"op": "remove", "path": "/a"}]'),
}

id_argument = click.argument("id", help="The document's id.")


@store_command("get")
@collection_argument
@id_argument
@partition_option
@click.option("--expiry", is_flag=True, help="Show when the document expires, and why, instead of the document.")
@at_option
def get_command(db: str, collection: str, id: str, partition: Any, expiry: bool, at: At | None) -> None:
    """Print a document as JSON; exit code 1 if there is none.

    \b
    Examples:
      ttlstore get app.db carts c1
      ttlstore get app.db carts c1 --expiry
      ttlstore get app.db orders SO05 --partition CO18009186470 --at +2h
    """
    with opened(db, at=at) as store:
        documents = store.collection(collection)
        if not expiry:
            show_document(documents.read(id, partition=partition))
            return
        found = documents.expiry(id, partition=partition)
    facts = {"why": in_words(found)}
    if found.expires_at is not None:
        facts |= {"expires at": format_time(found.expires_at), "time left": format_left(found.seconds_left)}
    show_facts(facts)


@store_command("put")
@collection_argument
@click.argument(
    "document",
    required=False,
    help="JSON, the name of a file with JSON, or - for stdin.",
    shell_complete=complete_file,
)
@click.option("--ttl", type=TTL, help="Set the document's ttl: never, or a duration such as 15m.")
def put_command(db: str, collection: str, document: str | None, ttl: int | None) -> None:
    """Store a document, and print it as stored.

    It is new, or takes the place of the one with its id.

    \b
    Examples:
      ttlstore put app.db carts '{"id": "c1", "items": ["tea"]}' --ttl 15m
      ttlstore put app.db carts cart.json
      curl https://example.com/cart.json | ttlstore put app.db carts
    """
    given = read_json(document, dict)
    if ttl is not None:
        given["ttl"] = ttl
    with opened(db) as store:
        show_document(store.collection(collection).upsert(given))


@store_command("patch")
@collection_argument
@id_argument
@click.argument(
    "operations",
    required=False,
    help="A JSON list, the name of a file with one, or - for stdin.",
    shell_complete=complete_file,
)
@partition_option
def patch_command(db: str, collection: str, id: str, operations: str | None, partition: Any) -> None:
    """Change parts of a document, and print it as stored.

    All of the operations apply or none. An operation is set, add, replace, remove, incr or move, on a path.

    \b
    Examples:
      ttlstore patch app.db carts c1 '[{"op": "incr", "path": "/total", "value": 5}]'
      ttlstore patch app.db carts c1 '[{"op": "set", "path": "/ttl", "value": -1}]'
      ttlstore patch app.db carts c1 changes.json
    """
    given = read_json(operations, list)
    with opened(db) as store:
        show_document(store.collection(collection).patch(id, given, partition=partition))


@store_command("touch")
@collection_argument
@id_argument
@partition_option
def touch_command(db: str, collection: str, id: str, partition: Any) -> None:
    """Restart the countdown of a document.

    \b
    Examples:
      ttlstore touch app.db carts c1
    """
    with opened(db) as store:
        documents = store.collection(collection)
        documents.touch(id, partition=partition)
        found = documents.expiry(id, partition=partition)
    click.echo(f"touched {id!r}: it {in_words(found)}")


@store_command("delete")
@collection_argument
@id_argument
@partition_option
def delete_command(db: str, collection: str, id: str, partition: Any) -> None:
    """Delete a document; exit code 1 if there is none.

    \b
    Examples:
      ttlstore delete app.db carts c1
    """
    with opened(db) as store:
        store.collection(collection).delete(id, partition=partition)
    click.echo(f"deleted {id!r} from {collection!r}")


def read_json(given: str | None, kind: type[T]) -> T:
    """JSON of a kind: from an argument that looks like it, from a file that it names, or from stdin."""
    import orjson

    what, expected = EXPECTED[kind]
    if given is None and sys.stdin.isatty():
        raise click.UsageError(f"give {what} as JSON, as the name of a file, or on stdin")
    if given is None or given == "-":
        source = "stdin"
        text = sys.stdin.buffer.read()
    elif given.lstrip().startswith(("{", "[", '"')):
        source = "the argument"
        text = given.encode(errors="surrogateescape")
    else:
        source = given
        try:
            with open(given, "rb") as file:
                text = file.read()
        except OSError as error:
            raise click.ClickException(
                f"{what} is {expected}, or a file with one: {given} cannot be read ({error.strerror})"
            ) from None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise click.ClickException(f"{source} is not JSON: {error}") from None
    if not isinstance(value, kind):
        raise click.ClickException(f"{what} is {expected}, and {source} is something else")
    return value
