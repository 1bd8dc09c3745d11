"""Run the benchmarks: python -m benchmarks [name …]"""

import platform
import sqlite3
import sys
from collections.abc import Callable, Iterator

from benchmarks import point, vacuum
from benchmarks.measure import Comparison, Promise

SUITES: dict[str, Callable[[], Iterator[Comparison | Promise]]] = {"point": point.run, "vacuum": vacuum.run}


def main(names: list[str]) -> None:
    unknown = set(names) - SUITES.keys()
    if unknown:
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    print(f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.machine()}")
    for name in names or SUITES:
        for result in SUITES[name]():
            print("\n".join(result.lines()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
