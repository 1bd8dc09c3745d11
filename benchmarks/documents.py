"""The documents that every benchmark uses: some 300 bytes of JSON each."""

from typing import Any


def document(number: int, *, customers: int = 1000) -> dict[str, Any]:
    return {
        "id": f"order-{number:08d}",
        "customerId": f"C-{number % customers:05d}",
        "status": ("open", "paid", "shipped", "closed")[number % 4],
        "total": (number * 7919 % 100_000) / 100,
        "items": [{"sku": "TEA-04", "quantity": 2}, {"sku": "CUP-11", "quantity": 1}],
        "address": {"city": ("Berlin", "Paris", "Rome")[number % 3], "zip": f"{number % 100_000:05d}"},
        "note": "left at the door, second floor, ring twice if nobody answers",
        "sequence": number,
    }
