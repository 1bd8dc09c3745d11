"""Which of the stores a test is about, if it is not about all of them."""

import pytest

on_sqlite = pytest.mark.parametrize("kind", ["file", "memory"], indirect=True)
"""What SQLite alone does, or does in its own way."""

on_a_file = pytest.mark.parametrize("kind", ["file"], indirect=True)
"""What is about files: their names, how they are made and found, what is written into them by hand."""

on_postgres = pytest.mark.parametrize("kind", ["postgres"], indirect=True)
"""What PostgreSQL alone does, or does in its own way."""
