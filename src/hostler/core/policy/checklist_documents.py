"""Checks what site and SKU say of a node's inspection: items that nobody could tell apart or tick are refused."""

from collections.abc import Iterator

from hostler.core.state.configuration import Configuration
from hostler.core.state.input_problems import WrongEntry
from hostler.core.state.onboarding import ITEM_CHARS, ITEMS_MOST


def checklist_problems(configuration: Configuration) -> Iterator[WrongEntry]:
    """Problems of the items of the site and of each SKU."""
    site = configuration.policy.checklist
    yield from _problems(("policy", "checklist"), site, site)
    for sku in configuration.skus.values():
        yield from _problems(("skus", sku.name, "checklist"), sku.checklist, (*site, *sku.checklist))


def _problems(place: tuple[str, ...], own: tuple[str, ...], whole: tuple[str, ...]) -> Iterator[WrongEntry]:
    for item in own:
        if not 0 < len(item) <= ITEM_CHARS or not item.isprintable() or item != item.strip():
            told = f"{'.'.join(place)}: {item[:40]!r} is no item"
            yield WrongEntry(told, f"write 1 to {ITEM_CHARS} characters of one line", place)
    if twice := sorted({item for item in own if whole.count(item) > 1}):
        yield WrongEntry(
            f"{'.'.join(place)}: {twice[0][:40]!r} is there twice", "name each item once, at the site or here", place
        )
    if own and len(whole) > ITEMS_MOST:
        yield WrongEntry(
            f"{'.'.join(place)}: {len(whole)} items, with those of the site, are too many",
            f"write {ITEMS_MOST} at most",
            place,
        )
