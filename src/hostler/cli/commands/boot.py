"""`hostler boot`: configuration for the boot network's DHCP server, and machines that nobody expects there."""

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from hostler.cli.command_errors import CommandError, unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.input_files import read_documents
from hostler.cli.list_commands import describe
from hostler.cli.options import CONNECT, SHOW_ONCE, Connect, ShowOnce
from hostler.cli.output import say
from hostler.client import routes

if TYPE_CHECKING:
    from hostler.core.state.boot import BootConfiguration

app = App(name="boot", help="Boots over the network.")


@app.command
def dnsmasq(files: Annotated[list[str], Parameter(negative=(), help="The configuration's documents.")], /) -> int:
    """Print dnsmasq's configuration for these documents: which boot loader a machine gets, and where that one asks."""
    from hostler.drivers.boot.dnsmasq_config import dnsmasq_config

    print(dnsmasq_config(_boots(files)), end="")
    return 0


@app.command
def kea(
    files: Annotated[list[str], Parameter(negative=(), help="The configuration's documents.")],
    /,
    *,
    push: Annotated[str, Parameter(help="Kea's control socket: put the classes in force there.")] = "",
    write: Annotated[bool, Parameter(negative=(), help="With --push: have Kea write its file too.")] = False,
) -> int:
    """Print the client classes of Kea's DHCPv4 for these documents, or push them: tested by Kea, then set.

    What else is in Kea's configuration stays as it is.
    """
    import asyncio
    import json

    from hostler.drivers.boot.kea_config import client_classes
    from hostler.drivers.boot.kea_socket import push as push_classes
    from hostler.ports import RefusedError, UnreachableError

    boots = _boots(files)
    if not push:
        print(json.dumps({"client-classes": client_classes(boots)}, indent=2))
        return 0
    try:
        print(asyncio.run(push_classes(push, boots, write=write)))
    except RefusedError as error:
        raise CommandError(ExitCode.refused, str(error), "correct what Kea names; nothing was changed") from error
    except UnreachableError as error:
        raise CommandError(ExitCode.unavailable, str(error), "see that Kea runs with this control socket") from error
    return 0


@app.command
def medium(
    loader: Annotated[str, Parameter(help="iPXE for UEFI (ipxe.efi), of 2021 or newer.")],
    out: Annotated[str, Parameter(help="The image to write: a path in the image folder that ends with .iso.")],
    /,
    *,
    arch: Annotated[Literal["x86_64", "arm64"], Parameter(help="The loader's architecture.")] = "x86_64",
    bios: Annotated[str, Parameter(help="iPXE as a kernel (ipxe.lkrn), for machines that boot by BIOS.")] = "",
) -> int:
    """Make the image of a boot medium, for machines whose BMC keeps no HTTP boot address; print its line."""
    import hashlib
    from pathlib import Path

    from hostler.drivers.boot.medium_image import MediumParts, looks_for_script, make_medium
    from hostler.ports import RefusedError

    if missing := next((one for one in (loader, bios) if one and not Path(one).is_file()), ""):
        raise unusable(f"'{missing}' is no file", "name iPXE's files; Debian's package ipxe has them in /usr/lib/ipxe")
    if not out.endswith(".iso"):
        raise unusable(f"'{out}' does not end with .iso", "name the image so: the configuration takes no other")
    try:
        make_medium(MediumParts(Path(loader), arch, Path(bios) if bios else None), Path(out))
    except RefusedError as error:
        raise CommandError(ExitCode.refused, str(error), "then run it again") from error
    if not looks_for_script(Path(loader)):
        say(f"{loader} looks for no script on its medium, so UEFI boots nothing of it: take an iPXE of 2021 or newer")
    digest = hashlib.sha256(Path(out).read_bytes()).hexdigest()
    print(f"  media: {{files: {{{arch}: {{file: {Path(out).name}, sha256: {digest}}}}}}}")
    return 0


def _boots(files: list[str]) -> "BootConfiguration":
    """The boot section of the documents. Raises CommandError."""
    from hostler.core.policy.documents import parse
    from hostler.core.state.input_problems import InvalidInputError

    try:
        boots = parse(read_documents(tuple(files))).boot
    except InvalidInputError as error:
        raise unusable(str(error)) from error
    if boots is None:
        raise unusable("the documents have no section boot", "add it; see docs/how-to/boot-a-node.md")
    return boots


@app.command
def strangers(*, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show the machines that asked for a boot and are not expected. None of them was booted into anything."""
    found = connect.client().get(routes.STATUS).get("strangers") or []
    if show.output not in ("table", "wide"):
        describe(found, "strangers", show.output)
        return 0
    for one in found:
        print(f"{one['mac']}  serial {one['serial'] or '-'}  from {one['address']}  last at {one['at']}")
    return 0
