"""A long run: python -m tests.faults --minutes 5 [--report docs/reliability.md] [what pytest takes]"""

import argparse
import sys
import time
from pathlib import Path

import pytest

from tests.faults.report import page, summary
from tests.faults.trial import Soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long to go on (default: 5)")
    parser.add_argument("--report", type=Path, help="the page to write if nothing has failed")
    options, for_pytest = parser.parse_known_args()
    start = time.monotonic()
    soak = Soak(options.minutes)
    status = pytest.main(["--pyargs", "tests.faults", *for_pytest], plugins=[soak])
    print(summary(soak))
    if options.report and status == pytest.ExitCode.OK:
        options.report.write_text(page(soak, minutes=(time.monotonic() - start) / 60), encoding="utf-8")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
