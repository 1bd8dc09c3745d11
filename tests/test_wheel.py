"""What users install: the built wheel, in an environment of its own, far from the checkout."""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    run(*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, CHECKOUT, cwd=folder)
    (built,) = folder.glob("ttlstore-*.whl")
    return built


def test_the_wheel_holds_the_package_its_types_and_its_migrations(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    revisions = [path.name for path in (CHECKOUT / "migrations" / "versions").glob("*.py")]
    assert revisions
    assert {f"ttlstore/migrations/versions/{name}" for name in revisions} <= held
    assert {"ttlstore/__init__.py", "ttlstore/py.typed", "ttlstore/migrations/env.py"} <= held
    others = {name.split("/")[0] for name in held if not name.startswith("ttlstore/")}
    assert len(others) == 1, "nothing else is installed beside it"


def test_an_installed_wheel_makes_and_migrates_a_store(wheel: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv, cwd=tmp_path)
    python = venv / "bin" / "python"
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path))
    zipfile.ZipFile(wheel).extractall(packages)
    # What it depends on is lent by the environment of the tests: nothing is downloaded.
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib"))
    code = (
        "import sys\n"
        "import ttlstore, ttlstore.migrate\n"
        "with ttlstore.open('app.db') as store:\n"
        "    store.create_collection('c', default_ttl=60).create({'id': 'a'})\n"
        "with ttlstore.open('app.db', migrate=False) as store:\n"
        "    assert store.collection('c').read('a') and store.check() == []\n"
        "    assert list(store.collection('c').query('SELECT VALUE c.id FROM c')) == ['a']\n"
        "assert 'lark' not in sys.modules, 'only those who change the language need it'\n"
        "print(ttlstore.__file__, ttlstore.migrate._location())\n"
    )
    package, migrations = run(python, "-c", code, cwd=tmp_path).split()
    assert Path(package).parent == packages / "ttlstore"
    assert Path(migrations) == packages / "ttlstore" / "migrations"
