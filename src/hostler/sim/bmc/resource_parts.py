"""Building blocks of Redfish resources: their head, links, collections, and the status that each shows."""

from collections.abc import Iterable
from datetime import datetime

from hostler.sim.bmc.emulated_machine import PartFault

ROOT = "/redfish/v1"
Document = dict[str, object]
WELL = PartFault("OK")
_ORDER = ("OK", "Warning", "Critical")


def resource(path: str, schema: str, identity: str, name: str) -> Document:
    """The head of a resource at a path behind ROOT."""
    return {
        "@odata.id": (ROOT + path) if path else ROOT + "/",
        "@odata.type": schema,
        "Id": identity,
        "Name": name,
    }


def link(path: str) -> Document:
    """A reference to the resource at a path behind ROOT."""
    return {"@odata.id": ROOT + path}


def collection(path: str, members: Iterable[str]) -> Document:
    """A collection at `path` with these ids as members."""
    found = [link(f"{path}/{member}") for member in members]
    name = path.rpartition("/")[2]
    doc: Document = {
        "@odata.id": ROOT + path,
        "@odata.type": f"#{name}Collection.{name}Collection",
        "Name": name,
    }
    return doc | {"Members": found, "Members@odata.count": len(found)}


def status(part_fault: PartFault = WELL) -> Document:
    """The status of what is there: its health, and why in a message where one is known."""
    shown: Document = {"State": "Enabled", "Health": part_fault.health}
    if part_fault.message_id or part_fault.message:
        said = {"MessageId": part_fault.message_id, "Message": part_fault.message, "Severity": part_fault.health}
        shown["Conditions"] = [said]
    return shown


def rolled_up(words: Iterable[str]) -> Document:
    """The status of what consists of parts: itself well, its rollup the worst of theirs."""
    worst = max(words, key=lambda word: _ORDER.index(word) if word in _ORDER else len(_ORDER), default="OK")
    return {"State": "Enabled", "Health": "OK", "HealthRollup": worst}


def moment(at: datetime) -> str:
    """A moment as BMCs write it."""
    return at.isoformat(timespec="seconds")
