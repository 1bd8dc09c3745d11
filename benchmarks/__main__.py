"""Run the benchmarks: python -m benchmarks [name …]"""

import platform
import sqlite3
import sys

from benchmarks import point

SUITES = {"point": point.run}


def main(names: list[str]) -> None:
    unknown = set(names) - SUITES.keys()
    if unknown:
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    print(f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.machine()}")
    for name in names or SUITES:
        for comparison in SUITES[name]():
            print("\n".join(comparison.lines()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
