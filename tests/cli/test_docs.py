"""What the docs show is what the commands print."""

import re
from pathlib import Path

import pytest

from tests.cli import tour


@pytest.mark.parametrize("page", tour.PAGES, ids=lambda page: page.name)
def test_a_page_shows_what_its_commands_print(page: Path) -> None:
    """If this fails, `make docs` records them anew: look at what changed."""
    assert tour.recorded(page.read_text()) == page.read_text()


def test_what_was_typed_into_a_page_does_not_stay() -> None:
    page = "Now:\n```console\n$ ttlstore init a.db\ninvented\n$ ttlstore migrate current b.db\n```\n"
    shown = tour.recorded(page)
    assert "invented" not in shown
    assert "$ ttlstore init a.db\ncreated a.db" in shown
    assert "$ ttlstore migrate current b.db\nError: there is no store at " in shown


def test_time_passes_when_the_page_says_so() -> None:
    page = "\n".join(
        [
            "```console",
            "$ ttlstore init a.db",
            "$ ttlstore create a.db notes --ttl 1h",
            """$ echo '{"id": "n1"}' | ttlstore put a.db notes > stored.json""",
            "$ ttlstore ls a.db notes --format jsonl",
            "$ sleep 1h",
            "$ ttlstore ls a.db notes",
            "```",
        ]
    )
    assert re.search(
        r'"seconds_left":3600\.0\}\n\$ sleep 1h\n\$ ttlstore ls a.db notes\nno documents', tour.recorded(page)
    )
