"""Arguments and options that several commands share."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from ttlstore.cli import opening
from ttlstore.cli.times import parse_default_ttl, parse_duration, parse_time, parse_ttl
from ttlstore.unset import UNSET

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

DATABASE_VARIABLE = "TTLSTORE_DB"
MAX_COUNT = 1_000_000_000  # of documents to list: all of them, as good as


class StoreCommand(click.Command):
    """A command whose first argument is the store, which TTLSTORE_DB may name instead."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        default = os.environ.get(DATABASE_VARIABLE)
        if default and self._leaves_out_store(ctx, args):
            args = [default, *args]
        return super().parse_args(ctx, args)

    def _leaves_out_store(self, ctx: click.Context, args: list[str]) -> bool:
        """Whether an argument is missing, or could follow and the first is not the name of a store that is there."""
        parser = self.make_parser(ctx)
        parser.ignore_unknown_options = True
        values, excess, _ = parser.parse_args(list(args))
        arguments = [param for param in self.params if isinstance(param, click.Argument)]
        given: list[Any] = [value for param in arguments if _is_given(value := values.get(param.name or ""))]
        if len(given) < sum(argument.required for argument in arguments):
            return True
        full = len(given) == len(arguments) and arguments[-1].nargs == 1
        return not (excess or full or "://" in given[0] or os.path.isfile(given[0]))


def _is_given(value: object) -> bool:
    return isinstance(value, str) or bool(isinstance(value, tuple) and value)


class Parsed(click.ParamType[T, object]):
    """A parameter that a function reads, which raises ValueError where it cannot."""

    def __init__(self, name: str, parse: Callable[[str], T]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> T:
        if not isinstance(value, str):
            return cast(T, value)  # a default, which Click converts as well
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _future(text: str) -> opening.At:
    parse_time(text, 0.0)  # raises, while it is known which option this is

    def at(now: float) -> float:
        then = parse_time(text, now)
        if then < now:
            reason = f"{text} is in the past: what has expired may be deleted, so only the future can be shown"
            raise click.BadParameter(reason, click.get_current_context(), param_hint="'--at'")
        return then

    return at


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:20]) <= MAX_COUNT:
        raise ValueError(f"a number from 1 to {MAX_COUNT:,} is needed, got {text!r}")
    return int(text)


def _json_or_text(text: str) -> Any:
    import orjson

    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ValueError(f"a parameter is written like name=value, got {text!r}")
    return name.removeprefix("@"), _json_or_text(value)


COUNT = Parsed("number", _count)
DURATION = Parsed("duration", parse_duration)
TTL = Parsed("ttl", parse_ttl)
DEFAULT_TTL = Parsed("setting", parse_default_ttl)
FUTURE = Parsed("time", _future)
JSON_OR_TEXT = Parsed("value", _json_or_text)
PARAMETER = Parsed("parameter", _parameter)


def complete_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Have the shell complete the name of a file."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def store_command(name: str, *, group: click.Group | None = None) -> Callable[[Callable[..., Any]], click.Command]:
    """A command on a store, which comes as its first argument."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        store = click.argument("db", help="The store: a path or a URL.", shell_complete=complete_file)
        command: click.Command = click.command(name, cls=StoreCommand)(store(function))
        if group is not None:
            group.add_command(command)
        return command

    return decorate


def collection_argument(function: F) -> F:
    return click.argument("collection", help="The name of a collection.", shell_complete=_complete_collection)(function)


def any_collection_argument(function: F) -> F:
    return click.argument(
        "collection",
        required=False,
        help="The name of a collection; all of them if left out.",
        shell_complete=_complete_collection,
    )(function)


def partition_option(function: F) -> F:
    return click.option(
        "--partition",
        type=JSON_OR_TEXT,
        default=UNSET,
        help="The partition's key, where that is not the id. Read as JSON (5, true, null) or else as text.",
    )(function)


def at_option(function: F) -> F:
    return click.option(
        "--at",
        type=FUTURE,
        help="What would be there at a time to come (2030-01-31T12:00, +2h) if nothing is written until then.",
    )(function)


def limit_option(function: F) -> F:
    return click.option("--limit", type=COUNT, default=20, show_default=True, help="How many, at most.")(function)


def yes_option(function: F) -> F:
    return click.option("--yes", "-y", is_flag=True, help="Do not ask.")(function)


def _complete_collection(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from ttlstore.errors import TtlStoreError

    try:
        with opening.opened(ctx.params["db"]) as store:
            return [found.name for found in store.list_collections() if found.name.startswith(incomplete)]
    except TtlStoreError:
        return []
