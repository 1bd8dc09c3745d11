import ast
from pathlib import Path

import pytest

import ttlstore.cli

BELOW = ("sqlalchemy", "alembic", "sqlite3", "psycopg", "ttlstore.engine", "ttlstore.statements", "ttlstore.vacuum")


@pytest.mark.parametrize("module", sorted(Path(ttlstore.cli.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_the_command_line_reaches_the_data_by_the_public_verbs_alone(module: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            imported |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
    assert [name for name in imported if name.startswith(BELOW)] == []
