"""Every example that a user reads is run."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ttlstore

CHECKOUT = Path(__file__).parent.parent
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]


def modules() -> list[ModuleType]:
    names = [info.name for info in pkgutil.walk_packages(ttlstore.__path__, "ttlstore.")]
    runs = (".__main__", ".migrations")  # what importing it would run
    return [ttlstore, *(importlib.import_module(name) for name in names if not any(part in name for part in runs))]


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """The Python code of a page, and the lines where it begins."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, block.start(1)), block.group(1)) for block in found]


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_the_examples_in_docstrings_are_true(
    module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


def test_the_front_door_has_an_example() -> None:
    assert doctest.testmod(ttlstore).attempted > 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    if "DATABASE_URL" in page.read_text(encoding="utf-8"):
        monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("postgres_url"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for line, code in python_blocks(page):
        # Compiled as if it stood in the page, so that a failure names its line there.
        exec(compile("\n" * line + code, str(page), "exec"), namespace)


def test_blocks_of_a_page_are_found_with_their_lines(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n\n```python\nx = 1\n```\n\n```sh\nls\n```\n```python\ny = x\n\nz = y\n```\n")
    assert python_blocks(page) == [(3, "x = 1\n"), (10, "y = x\n\nz = y\n")]


def test_every_public_name_and_verb_says_what_it_is() -> None:
    assert [name for name in ttlstore.__all__ if not getattr(ttlstore, name).__doc__] == []
    verbs = {**vars(ttlstore.Store), **vars(ttlstore.Collection)}
    assert [name for name, verb in verbs.items() if not name.startswith("_") and not verb.__doc__] == []


@pytest.mark.parametrize(
    "page", [*PAGES, CHECKOUT / "CONTRIBUTING.md", CHECKOUT / "CHANGELOG.md"], ids=lambda p: p.name
)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []
