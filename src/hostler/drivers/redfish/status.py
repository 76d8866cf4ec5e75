"""What a part's Status says, pure: its word of health and the message behind it, by DMTF's schema bundle 2024.4."""

from hostler.core.model import Facts
from hostler.drivers.redfish.reading import Document, child, objects, text, truth, word_of, worst
from hostler.drivers.redfish.wire import absent, processor_kind, slot_of

_SLOTS: dict[str, tuple[str, ...]] = {
    "processor": ("Socket", "Id"),
    "memory": ("DeviceLocator", "Id"),
    "drive": ("Id", "Name"),
    "nic": ("Id", "Name"),
}
MAX_SAYS = 200


def part_facts(doc: Document, kind: str) -> Facts:
    """One part's facts: "health:KIND:SLOT" its word, and with it "serial:…" and "says:…" where it shows these.

    Empty for an empty slot and for a part of which nothing is said: that proves nothing. A drive that predicts its own
    failure is critical.
    """
    status = child(doc, "Status")
    word = word_of(status)
    if kind == "drive" and truth(doc, "FailurePredicted"):
        word = worst(word, "critical")
    if not word or absent(doc):
        return {}
    named = f"{processor_kind(doc) if kind == 'processor' else kind}:{text(doc, *_SLOTS[kind]) or slot_of(doc)}"
    shown: Facts = {f"health:{named}": word}
    serial, says = text(doc, "SerialNumber"), _says(doc, status)
    if serial:
        shown[f"serial:{named}"] = serial
    if says:
        shown[f"says:{named}"] = says
    return shown


def _says(doc: Document, status: Document) -> str:
    """The messages of the conditions that the status holds."""
    said = [
        ": ".join(filter(None, (text(one, "MessageId"), text(one, "Message")))) for one in objects(status, "Conditions")
    ]
    predicted = ["it predicts its own failure"] if truth(doc, "FailurePredicted") else []
    return "; ".join(dict.fromkeys(one for one in (*said, *predicted) if one))[:MAX_SAYS]
