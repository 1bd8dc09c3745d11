"""`completion`: what makes a shell complete commands, options and names of collections."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS), help="The shell to print the script for.")
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print what makes a shell complete commands and names.

    Completes commands, options and the names of collections.

    \b
    Examples:
      ttlstore completion bash >> ~/.bashrc
      ttlstore completion zsh >> ~/.zshrc
      ttlstore completion fish > ~/.config/fish/completions/ttlstore.fish
    """
    complete = get_completion_class(shell)
    assert complete is not None  # Click has a class for each of these
    root = ctx.find_root()
    click.echo(complete(root.command, {}, "ttlstore", "_TTLSTORE_COMPLETE").source())
