"""Client classes for Kea's DHCPv4: which boot loader a machine gets, and where that one asks. Pure; leases stay Kea's.

Expressions, fields and answers of its control channel as Kea's administrator reference describes them (2.2 and later).
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from hostler.core.state.boot import BootConfiguration

OURS = "hostler-"
"""How the names of our classes begin; all others are left as they are."""
_IPXE = f"{OURS}ipxe"
_BY_HTTP = {"x86_64": "0x0010", "arm64": "0x0013"}
"""Architecture of UEFI HTTP boot → its number in DHCP's option 93 (IANA, processor architecture types)."""
_EFI = ("0x0007", "0x0009", "0x000b")
_BIOS = "0x0000"

Document = dict[str, Any]


class KeaAnswer(Struct, frozen=True):
    """Kea's answer to a command: `result` 0 is done, `text` says why it is not."""

    result: int
    text: str = ""
    arguments: Document | None = None


def client_classes(boots: BootConfiguration) -> list[Document]:
    """Hostler's classes, in the order in which Kea evaluates them: iPXE first, the others are for whoever is none."""
    loaders = [_class(f"http-{arch}", _other(_BY_HTTP[arch]), _loader(boots, arch)) for arch in boots.loaders]
    return [
        {"name": _IPXE, "test": "option[77].hex == 'iPXE'", "boot-file-name": f"{boots.url}/ipxe"},
        *loaders,
        _class("efi", _other(*_EFI), {"boot-file-name": "snponly.efi"}),
        _class("bios", _other(_BIOS), {"boot-file-name": "undionly.kpxe"}),
    ]


def merged(dhcp4: Mapping[str, Any], boots: BootConfiguration) -> Document:
    """Kea's configuration with our classes in the place of those that it had. Raises ValueError for what is none."""
    classes = dhcp4.get("client-classes", [])
    if not isinstance(classes, list) or not all(isinstance(one, dict) for one in classes):
        raise ValueError("its client-classes are no list of classes; make client-classes a list in Kea's configuration")
    others = [one for one in classes if not str(one.get("name", "")).startswith(OURS)]
    return {**dhcp4, "client-classes": [*others, *client_classes(boots)]}


def running(answer: KeaAnswer) -> Document:
    """The section Dhcp4 of an answer to config-get. Raises ValueError."""
    found = (answer.arguments or {}).get("Dhcp4")
    if not isinstance(found, dict):
        what = "its answer has no section Dhcp4: is this kea-dhcp4's socket?"
        raise ValueError(what)  # noqa: TRY004 - told like every other answer that is not Kea's
    return found


def read_answer(body: bytes) -> KeaAnswer:
    """The answer. Raises ValueError."""
    try:
        return msgspec.json.decode(body, type=KeaAnswer)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"it does not answer as Kea does: {error}; is this kea-dhcp4's control socket?") from error


def _class(name: str, test: str, more: Document) -> Document:
    return {"name": f"{OURS}{name}", "test": test, **more}


def _other(*numbers: str) -> str:
    """Test for a machine of one of these architectures that is not iPXE yet."""
    arches = " or ".join(f"option[93].hex == {number}" for number in numbers)
    return f"({arches}) and not member('{_IPXE}')"


def _loader(boots: BootConfiguration, arch: str) -> Document:
    """UEFI that boots by HTTP wants its vendor class back."""
    back = {"name": "vendor-class-identifier", "data": "HTTPClient", "always-send": True}
    return {"boot-file-name": f"{boots.url}/loader/{arch}.efi", "option-data": [back]}
