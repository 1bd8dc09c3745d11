"""What must be in a collection, by what the recorder was told."""

import copy
from typing import Any

from tests.faults.works import Step
from tests.model import Model, Row


class Ledger(Model):
    """What the recorder knows of collection c."""

    def __init__(self, default_ttl: int | None) -> None:
        super().__init__()
        self.default_ttl["c"] = default_ttl
        self.rows["c"] = {}

    def apply(self, change: list[Step], now: float) -> None:
        milliseconds = round(now * 1000)
        for verb, argument in change:
            rows, live = self.rows["c"], self.live("c", milliseconds)
            id = argument if isinstance(argument, str) else argument["id"]
            if (verb == "create" and id in live) or (verb not in ("create", "upsert") and id not in live):
                continue
            if verb == "delete":
                del rows[id]
                continue
            document = live[id].document if isinstance(argument, str) else argument
            if verb == "incr":
                document = {**document, "n": document["n"] + 1}
            rows[id] = Row(document, milliseconds, "")

    def shown(self, now: float) -> dict[str, dict[str, Any]]:
        live = self.live("c", round(now * 1000))
        return {id: {**row.document, "_ts": row.ts // 1000} for id, row in live.items()}


def history(ledger: Ledger, told: list[Any], now: float) -> list[Ledger]:
    """What there was before and after each change that was begun."""
    ledgers = [ledger]
    for word, change in told:
        if word == "about to":
            ledgers.append(copy.deepcopy(ledgers[-1]))
            ledgers[-1].apply(change, now)
    return ledgers
