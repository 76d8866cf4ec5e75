"""`hostler boot`: configuration for the boot network's DHCP server, and machines that nobody expects there."""

from typing import Annotated

from cyclopts import App, Parameter

from hostler.cli.command_errors import unusable
from hostler.cli.input_files import read_documents
from hostler.cli.list_commands import describe
from hostler.cli.options import CONNECT, SHOW_ONCE, Connect, ShowOnce

app = App(name="boot", help="Boots over the network.")


@app.command
def dnsmasq(files: Annotated[list[str], Parameter(negative=(), help="The configuration's documents.")], /) -> int:
    """Print dnsmasq's configuration for these documents: which boot loader a machine gets, and where that one asks."""
    from hostler.core.policy.documents import parse
    from hostler.core.state.input_problems import InvalidInputError
    from hostler.drivers.boot.dnsmasq_config import dnsmasq_config

    try:
        boots = parse(read_documents(tuple(files))).boot
    except InvalidInputError as error:
        raise unusable(str(error)) from error
    if boots is None:
        raise unusable("the documents have no section boot", "add it; see docs/how-to/boot-a-node.md")
    print(dnsmasq_config(boots), end="")
    return 0


@app.command
def strangers(*, show: ShowOnce = SHOW_ONCE, connect: Connect = CONNECT) -> int:
    """Show the machines that asked for a boot and are not expected. None of them was booted into anything."""
    found = connect.client().get("/v1/status").get("strangers") or []
    if show.output not in ("table", "wide"):
        describe(found, "strangers", show.output)
        return 0
    for one in found:
        print(f"{one['mac']}  serial {one['serial'] or '-'}  from {one['address']}  last at {one['at']}")
    return 0
