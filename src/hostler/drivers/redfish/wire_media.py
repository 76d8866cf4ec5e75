"""Virtual drives as BMCs show them, whose medium is in one, and how each wants to be asked for another. Pure.

DMTF's schema is VirtualMedia. Where BMCs differ: OpenStack's sushy, `resources/manager/virtual_media.py` (Lenovo has no
actions and is changed by PATCH; Supermicro refuses `Inserted` where it is not asked for; some insist on
`TransferProtocolType` or `TransferMethod`; HPE's eject takes an empty object), ansible-collections community.general,
issue 6969 (Supermicro keeps the name of a medium that was ejected), and bmcweb's `virtual_media.hpp`, OpenBMC's and
NVIDIA's (a drive for browsers has no InsertMedia; what is fetched comes by HTTPS or SMB).
"""

from urllib.parse import unquote, urlsplit

from msgspec import Struct

from hostler.drivers.redfish.tolerant_json import Document, child, document, link, printable, strings, text, truth
from hostler.drivers.redfish.wire import target_of

_OPTICAL = frozenset({"CD", "DVD"})
_GONE = "notconnected"
INSERT, EJECT = "#VirtualMedia.InsertMedia", "#VirtualMedia.EjectMedia"
_NAMED = ("TransferProtocolType", "TransferMethod")
_DROPPABLE = ("Inserted", "WriteProtected")
TRIES_MOST = 5
"""Shapes of one request that are tried: the plain one, one for each word above."""


class VirtualDrive(Struct, frozen=True):
    """One virtual drive. `insert` and `eject` are paths of its actions, "" for one that is changed by PATCH.

    `image` is the address of its medium, "" where it shows none, `name` what it calls that. `holds`: something is in.
    """

    path: str
    optical: bool
    holds: bool
    image: str = ""
    name: str = ""
    insert: str = ""
    eject: str = ""
    etag: str = ""

    @property
    def fillable(self) -> bool:
        """Whether a medium for a CD's drive can be put in now: not where eject alone is offered, as for browsers."""
        return self.optical and not self.holds and (self.insert != "" or self.eject == "")

    @property
    def shown(self) -> str:
        """The medium as people may read it: an address may hold a password or a secret."""
        address = urlsplit(self.image) if "://" in self.image else None
        if address is None:
            return printable((self.image or self.name).rpartition("/")[2], 80) or "a medium without a name"
        return printable(f"{address.path.rpartition('/')[2] or 'a medium'} of {address.hostname or 'somewhere'}", 120)


def drive(raw: bytes, path: str) -> VirtualDrive:
    """One virtual drive, read at `path`. What was ejected is gone, though its name may stand there."""
    doc = document(raw, "virtual drive")
    kinds = {kind.upper() for kind in strings(doc, "MediaTypes")}
    actions = child(doc, "Actions")
    return VirtualDrive(
        path=link(doc) or path,
        optical=bool(kinds & _OPTICAL) or not kinds,
        holds=bool(truth(doc, "Inserted")) and text(doc, "ConnectedVia").lower() != _GONE,
        image=_address(doc),
        name=text(doc, "ImageName"),
        insert=target_of(child(actions, INSERT)),
        eject=target_of(child(actions, EJECT)),
        etag=text(doc, "@odata.etag"),
    )


def is_of(drive: VirtualDrive, medium: str) -> bool:
    """Whether the drive's medium has this address, or begins with it where it ends in a stroke.

    A BMC that shows no address, but only a file's name, has it where the name is the medium's.
    """
    shown = drive.image or drive.name
    if "/" not in shown:
        return bool(shown) and shown == _file_of(medium)
    here, there = unquote(shown), unquote(medium)
    return here.startswith(there) if there.endswith("/") else here == there


def first_body(drive: VirtualDrive, medium: str) -> Document:
    """The request to insert it, as the schema has it: what is left out has the value that is wanted.

    A drive without actions takes a change, and has to be told all of it.
    """
    if drive.insert:
        return {"Image": medium}
    return {"Image": medium, "Inserted": True, "WriteProtected": True}


def next_body(body: Document, medium: str, refused: str) -> Document | None:
    """The same request in the shape that the refusal's words ask for, None where they name nothing of it."""
    values: Document = {"TransferProtocolType": medium.partition("://")[0].upper(), "TransferMethod": "Stream"}
    for name in _NAMED:
        if name in refused and name not in body:
            return body | {name: values[name]}
    for name in _DROPPABLE:
        if name in refused and name in body:
            return {key: value for key, value in body.items() if key != name}
    return None


def wants_licence(refused: str) -> bool:
    """Whether a BMC's words say that it would, had somebody bought it."""
    lower = refused.lower()
    return any(word in lower for word in ("license", "licence", "sft-oob", "sft-dcms"))


def wants_https(medium: str, refused: str) -> bool:
    """Whether a BMC refuses this medium for the way by which it would be fetched, as OpenBMC's do."""
    lower = refused.lower()
    return medium.startswith("http://") and ("format not recognized" in lower or "unknownformat" in lower)


def _address(doc: Document) -> str:
    value = doc.get("Image")
    return value if isinstance(value, str) and len(value) <= 2048 and value.isprintable() else ""


def _file_of(medium: str) -> str:
    return medium.rstrip("/").rpartition("/")[2]
