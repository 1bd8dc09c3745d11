"""Which of the stores a test is about, if it is not about all of them."""

import pytest

on_sqlite = pytest.mark.parametrize("kind", ["file", "memory"], indirect=True)
"""What SQLite alone does, or does in its own way."""
