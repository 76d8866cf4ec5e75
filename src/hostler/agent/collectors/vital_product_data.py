"""Serial numbers in binary form: PCI vital product data, SCSI page 0x80 and SMBIOS memory devices. Pure."""

from msgspec import Struct

from hostler.core.diagnose.serials import meaningful

_IDENTIFIER, _READ_ONLY, _END = 0x82, 0x90, 0x78


class Dimm(Struct, frozen=True):
    """One memory module (SMBIOS type 17); an empty socket has `size_mib` 0."""

    locator: str
    size_mib: int
    maker: str
    serial: str
    model: str


def pci_vpd(raw: bytes) -> dict[str, str]:
    """The read-only keywords of PCI vital product data ("SN", "PN", "EC" …) and "name" (PCI 3.0, appendix I)."""
    found: dict[str, str] = {}
    at = 0
    while at + 3 <= len(raw) and raw[at] != _END:
        tag, length = raw[at], int.from_bytes(raw[at + 1 : at + 3], "little")
        body = raw[at + 3 : at + 3 + length]
        if tag == _IDENTIFIER:
            found["name"] = _ascii(body)
        elif tag == _READ_ONLY:
            found |= _keywords(body)
        elif not tag & 0x80:
            break
        at += 3 + length
    return found


def scsi_serial(raw: bytes) -> str:
    """The unit serial number of a SCSI vital product data page 0x80 (SPC-4)."""
    if len(raw) < 4 or raw[1] != 0x80:
        return ""
    return meaningful(_ascii(raw[4 : 4 + int.from_bytes(raw[2:4], "big")]))


def smbios_dimm(raw: bytes) -> Dimm | None:
    """One raw SMBIOS structure as a memory module (DSP0134, 7.18); None where it is none."""
    if len(raw) < 0x1B or raw[0] != 17 or raw[1] < 0x1B:
        return None
    strings = raw[raw[1] :].split(b"\x00")

    def text(offset: int) -> str:
        index = raw[offset]
        return meaningful(_ascii(strings[index - 1])) if 0 < index <= len(strings) else ""

    return Dimm(text(0x10), _dimm_size_mib(raw), text(0x17), text(0x18), text(0x1A))


def _dimm_size_mib(raw: bytes) -> int:
    size = int.from_bytes(raw[0x0C:0x0E], "little")
    if size == 0x7FFF and raw[1] >= 0x20:
        return int.from_bytes(raw[0x1C:0x20], "little") & 0x7FFFFFFF
    if size in (0, 0xFFFF):
        return 0
    return (size & 0x7FFF) // 1024 if size & 0x8000 else size


def _keywords(body: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at + 3 <= len(body):
        name, length = body[at : at + 2], body[at + 2]
        if name != b"RV":
            found[_ascii(name)] = meaningful(_ascii(body[at + 3 : at + 3 + length]))
        at += 3 + length
    return found


def _ascii(raw: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else " " for byte in raw).strip()
