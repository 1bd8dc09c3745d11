"""The command line: `ttlstore`.

The command modules import at their top what costs nothing. SQLAlchemy, rich and the like are imported inside the
commands that need them, so that `--help` and completion answer at once.
"""

import os
import sys
import traceback
from importlib import import_module

import click

from ttlstore.cli.output import message
from ttlstore.cli.secrets import without_passwords
from ttlstore.errors import TtlStoreError
from ttlstore.start import INTERRUPTED

# By family, in the order of the help: the commands and the modules they are in.
COMMANDS = {
    "Start": {"demo": "demo", "init": "stores", "info": "stores"},
    "Collections": {
        "collections": "collections",
        "create": "collections",
        "drop": "collections",
        "ttl": "ttl",
        "index": "index",
    },
    "Documents": {
        "ls": "listing",
        "get": "documents",
        "put": "documents",
        "patch": "documents",
        "touch": "documents",
        "delete": "documents",
        "recover": "recover",
    },
    "Insight": {
        "query": "query",
        "stats": "stats",
        "forecast": "forecast",
    },
    "Operation": {
        "vacuum": "vacuum",
        "import": "transfer",
        "export": "transfer",
        "check": "stores",
        "backup": "stores",
        "copy": "copying",
        "migrate": "migrate",
        "completion": "completion",
    },
}
_TYPED = "ttlstore.typed"  # the words of the command line, among what a context knows
_MODULES = {name: module for family in COMMANDS.values() for name, module in family.items()}


class Cli(click.Group):
    """The group of all commands: loads one when it is asked for, and says errors on one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        wanted = (cmd_name,) if cmd_name in _MODULES else _MODULES  # all: to suggest one for a name that is not there
        for name in wanted:
            if name not in self.commands:
                module = import_module(f"ttlstore.cli.{_MODULES[name]}")
                self.commands[name] = getattr(module, f"{name}_command")
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _MODULES))
        for family, names in COMMANDS.items():
            with formatter.section(family):
                formatter.write_dl(
                    [
                        (name.ljust(width), command.get_short_help_str(formatter.width - width - 6))
                        for name in names
                        if (command := self.get_command(ctx, name))
                    ]
                )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_TYPED] = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except click.ClickException as error:
            raise _without_passwords(error, ctx) from None

    def invoke(self, ctx: click.Context) -> object:
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:  # which a caller may have closed
                sys.stdout.flush()
        except BrokenPipeError:
            _drop_output()  # whoever reads has seen enough
            ctx.exit(0)
        except KeyboardInterrupt:
            # Click would end with 1, as after a refusal.
            click.echo("\ninterrupted", err=True)
            ctx.exit(INTERRUPTED)
        except (TtlStoreError, click.ClickException, OSError) as error:
            if ctx.params["debug"]:
                click.echo(without_passwords(traceback.format_exc(), ctx.meta[_TYPED]), err=True, nl=False)
            if isinstance(error, click.ClickException):
                raise _without_passwords(error, ctx) from None
            if not isinstance(error, TtlStoreError):
                _drop_output()  # a full disk, as a rule
            raise _without_passwords(click.ClickException(message(error)), ctx) from error
        return result


def _without_passwords(error: click.ClickException, ctx: click.Context) -> click.ClickException:
    for name, value in vars(error).items():
        if isinstance(value, str):
            setattr(error, name, without_passwords(value, ctx.meta[_TYPED]))
    return error


def _drop_output() -> None:
    """Forget what could not be written: Python would complain once more when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=Cli,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="DB is a path, or a URL such as postgresql://user@host/app; it may be left out where TTLSTORE_DB is set.",
)
@click.version_option(package_name="ttlstore", prog_name="ttlstore", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """A document store whose documents expire.

    \b
    New here?                 ttlstore demo
    Look into a store:        ttlstore collections app.db
    What a command does:      ttlstore COMMAND --help

    Exit codes: 0 done, 1 not found or refused, 2 wrong usage, 130 interrupted.
    """
