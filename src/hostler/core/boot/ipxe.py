"""Boot scripts in iPXE's language. Pure: everything in them has been checked, or is made harmless here."""

import re

from msgspec import Struct

from hostler.core.state.boot import BootImage

AGAIN_S = 300
"""A machine that is held asks again after so long: the reason may be over."""
RETRY_S = 30
TRIES = 5
"""So often a script fetches its image; then the machine is held, and does not restart."""

ROOM = 2_048
"""Bytes that a boot medium keeps for its script: one sector of a CD."""
MARK = b"#!ipxe\n# Hostler lays the script of one boot over these bytes.\n"
ROOM_FOR_SCRIPT = MARK.ljust(ROOM, b"\n")
"""Script on a medium that is of no boot: it does nothing, and is known by how it begins."""

_UNSAFE = re.compile(r"[^A-Za-z0-9 .,:;()/_+=@-]")
TEXT_MAX = 200


class ImageUrls(Struct, frozen=True):
    """Addresses that a script needs: of the image's folder, of cloud-init's data ("" for none), and its own."""

    images: str
    seed: str
    again: str


def first_script(again: str, *, bare: bool = False) -> str:
    """The script that has the machine say who it is: only the boot loader knows its address and serial number.

    `bare`: nothing has configured the network before it, as on a boot medium, and in a loader that UEFI has fetched.
    """
    return _lines(
        f"set base {again}",
        ":ask",
        *(("dhcp || goto retry",) if bare else ()),
        "chain --replace --autofree ${base}?mac=${netX/mac}&serial=${serial:uristring}&arch=${buildarch} || goto retry",
        ":retry",
        f"echo Hostler does not answer, asking again in {RETRY_S} s",
        f"sleep {RETRY_S}",
        "goto ask",
    )


def image_script(node: str, image: BootImage, urls: ImageUrls) -> str:
    """Boot an image of the catalogue."""
    args = [image.args, f"hostler.node={node}"]
    if urls.seed:
        args += [f"ds=nocloud-net;s={urls.seed}", f"hostler.seed={urls.seed}"]
    initrds = [path.rpartition("/")[2] for path in image.initrd]
    kernel = " ".join(part for part in (*(f"initrd={name}" for name in initrds), *args) if part)
    fetched = [f"kernel {urls.images}/{image.kernel} {kernel} || goto retry"]
    fetched += [f"initrd {urls.images}/{path} || goto retry" for path in image.initrd]
    return _lines(
        f"echo Hostler boots {node} into {image.name}",
        "set tries:int32 0",
        ":fetch",
        "imgfree",
        *fetched,
        "boot || goto failed",
        ":retry",
        "inc tries",
        f"iseq ${{tries}} {TRIES} && goto failed ||",
        f"sleep {RETRY_S}",
        "goto fetch",
        ":failed",
        *_waiting(f"image {image.name} cannot be fetched or started", urls.again),
    )


def hold_script(node: str, reason: str, again: str) -> str:
    """Stay at the boot loader with the reason on the console, and ask again after a while."""
    return _lines(f"echo Hostler holds {shown(node) or 'this machine'}", *_waiting(reason, again))


def local_script(again: str) -> str:
    """Boot from the local disk: under UEFI by giving way to the next boot entry, else from the first drive.

    A boot entry that fails gives way; after one that ends well firmware stays in its setup (UEFI 2.10, 3.1.1).
    """
    return _lines(
        "echo Hostler boots the local disk",
        "iseq ${platform} efi && exit 1 ||",
        "sanboot --no-describe --drive 0x80 || goto failed",
        ":failed",
        *_waiting("the local disk does not boot", again),
    )


def shown(text: str) -> str:
    """The text as a console and a script may have it."""
    return _UNSAFE.sub("?", text)[:TEXT_MAX]


def _waiting(reason: str, again: str) -> tuple[str, ...]:
    return (f"echo {shown(reason)}", f"sleep {AGAIN_S}", *first_script(again).splitlines()[1:])


def _lines(*lines: str) -> str:
    return "\n".join(("#!ipxe", *lines, ""))
