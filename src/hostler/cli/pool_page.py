"""A pool's page: its fields, and who uses its budget."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from hostler.cli.list_commands import lines_of
from hostler.cli.list_view import age

Object = dict[str, Any]


def pool_page(found: Object) -> Iterator[str]:
    """The pool's fields as "field: value", then the nodes that use its budget, one a line."""
    yield from lines_of({name: value for name, value in found.items() if name != "budget"})
    if use := found.get("budget"):
        yield from _used(use, found["pool"]["name"], datetime.now(UTC))


def _used(use: Object, pool: str, now: datetime) -> Iterator[str]:
    reserve = f", {use['reserve']} more for immediate remedies" if use["reserve"] else ""
    waiting = f"; {use['waiting']} wait for room" if use["waiting"] else ""
    yield f"budget: {use['used']} of {use['limit']} used{reserve}{waiting}"
    if use["missing"]:
        yield f"  {use['missing']} members are missing from the pool"
    for user in use["users"]:
        step = f" at {user['step']}" if user["step"] else ""
        waits = f", waits: {user['waits_for']}" if user["waits_for"] else ""
        yield f"  {user['node']}  {user['doing']}{step} for {age(user['since'], now)}{waits}"
    if use["more"]:
        yield f"  and {use['more']} more: hostler node list --pool {pool}"
