"""Questions before what cannot be undone."""

import click


def confirm(question: str) -> None:
    """Ask, and return after a yes. Raises Abort after a no, and KeyboardInterrupt after Ctrl-C."""
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort as error:
        # Click raises the same in all three cases.
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        if isinstance(error.__context__, EOFError):
            click.echo("", err=True)
            raise click.ClickException("nobody is there to answer: pass --yes to do it unasked") from None
        raise
