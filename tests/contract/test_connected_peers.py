"""Every outgoing driver against names that lead elsewhere when it connects: nothing is connected to, nothing is sent.

The positive control of each: the same driver connects where a settings file names the address itself.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace

from hostler.core.state.notify_routes import Route
from hostler.drivers.checked_requests import site_requests
from hostler.drivers.infiniband.ufm_client import UfmPlace, events
from hostler.drivers.kubernetes.kube_api import Api
from hostler.drivers.kubernetes.kubeconfig import KubernetesAccess
from hostler.drivers.netbox.client import session_with
from hostler.drivers.notify.apprise_target import AppriseTarget
from hostler.drivers.notify.mail import MailTarget
from hostler.drivers.redfish.connection_pool import Connections
from hostler.drivers.redfish.firmware_images import HttpImages
from hostler.drivers.redfish.shown_certificate import shown_certificate
from hostler.drivers.slurm.rest_transport import RestEndpoint
from hostler.drivers.target_http import Letter, NetworkLimits, post
from hostler.ports import PortError
from hostler.runtime.reachable_addresses import AddressRefusedError, site_session
from hostler.server.oidc_provider import OidcProvider, SignInError
from hostler.server.server_settings import Settings
from hostler.server.sign_in_settings import SignInSettings
from hostler.server.standby_proxy import Forwarder
from tests.contract.test_notify_targets import PAGE, Kept

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # a plugin's of apprise

NAME = "printer.example.org"
PUBLIC = "93.184.215.14"


class Listener:
    """A service of this host that nobody outside is meant to reach: who connected to it, and what they sent."""

    def __init__(self) -> None:
        self.port = 0
        self.connected = 0

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connected += 1
        with suppress(OSError, TimeoutError):
            await asyncio.wait_for(reader.read(1000), 2.0)
        writer.close()


@pytest.fixture
async def inside() -> AsyncIterator[Listener]:
    listener = Listener()
    server = await asyncio.start_server(listener.take, "127.0.0.1", 0)
    listener.port = server.sockets[0].getsockname()[1]
    yield listener
    server.close()


@pytest.fixture
def rebound(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A name server of an attacker: NAME is public the first time that it is asked for, and this host from then on."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def answer(host: Any, port: Any, *more: Any, **others: Any) -> Any:
        if host not in (NAME, NAME.encode()):
            return real(host, port, *more, **others)
        asked.append(str(host))
        address = PUBLIC if len(asked) == 1 and FIRST_PUBLIC else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, int(port or 0)))]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    return asked


FIRST_PUBLIC = False

Ask = Callable[[str, int, Path], Awaitable[object]]


async def redfish(host: str, port: int, _: Path) -> object:
    origin = f"https://{host}:{port}"
    async with Connections() as connections:
        return await connections(origin).get(f"{origin}/redfish/v1", timeout=aiohttp.ClientTimeout(5))


async def certificate(host: str, port: int, _: Path) -> object:
    return await shown_certificate(f"https://{host}:{port}", 5.0)


async def image(host: str, port: int, _: Path) -> object:
    return await HttpImages().digest(f"http://{host}:{port}/image.bin")


async def slurm(host: str, port: int, _: Path) -> object:
    url = f"https://{host}:{port}"
    async with RestEndpoint(url, "hostler", "none").session() as session:
        return await session.get(url, timeout=aiohttp.ClientTimeout(5))


async def ufm(host: str, port: int, _: Path) -> object:
    return await events(UfmPlace(f"https://{host}:{port}", timeout_s=5.0))


class NoLogin:
    async def header(self, refused: str = "") -> str:
        return ""


async def kubernetes(host: str, port: int, _: Path) -> object:
    access = KubernetesAccess(f"https://{host}:{port}", ssl.create_default_context(), NoLogin())
    async with Api(access, lambda: None) as api:
        return await asyncio.wait_for(api.get("/api/v1/nodes"), 5.0)


async def netbox(host: str, port: int, _: Path) -> object:
    url = f"http://{host}:{port}"
    with session_with(url) as session:
        return await asyncio.to_thread(session.get, f"{url}/api/")


async def keystone(host: str, port: int, _: Path) -> object:
    url = f"http://{host}:{port}"
    with site_requests(url) as session:
        return await asyncio.to_thread(session.get, f"{url}/v3", timeout=5.0)


async def vault_ironic_issuer(host: str, port: int, _: Path) -> object:
    async with site_session() as session:
        return await session.get(f"http://{host}:{port}", timeout=aiohttp.ClientTimeout(5))


async def standby(host: str, port: int, _: Path) -> object:
    forwarder = Forwarder(Settings(), "c2")
    forwarder._hosts.add(f"https://{host}:{port}")  # noqa: SLF001 - as `_answer` does
    try:
        return await forwarder._open().get(f"https://{host}:{port}")  # noqa: SLF001
    finally:
        await forwarder.close()


SITE: tuple[Ask, ...] = (
    redfish, certificate, image, slurm, ufm, kubernetes, netbox, keystone, vault_ironic_issuer, standby,
)  # fmt: skip
"""Drivers whose addresses a file on this host names."""
FAILURES = (PortError, OSError, aiohttp.ClientError, TimeoutError, Exception)


@pytest.mark.parametrize("ask", SITE, ids=lambda ask: ask.__name__)
async def test_a_name_of_the_site_that_leads_to_this_host_is_not_connected_to(
    ask: Ask, inside: Listener, rebound: list[str], tmp_path: Path
) -> None:
    """Mutants: a session with a connector of its own; the name is judged, and resolved again."""
    with pytest.raises(Exception):  # noqa: B017, PT011 - each driver's own error
        await ask(NAME, inside.port, tmp_path)
    assert rebound, "it was asked for"
    assert inside.connected == 0
    with suppress(*FAILURES):
        await ask("127.0.0.1", inside.port, tmp_path)
    assert inside.connected, "an address that is named in full is asked"


ROUTE = Route("r", "webhook", secret="folder:x", timeout_s=4.0)


async def webhook(host: str, port: int, networks: tuple[str, ...]) -> object:
    return await post(Letter(f"http://{host}:{port}/hook", b"{}", {}), NetworkLimits(networks, timeout_s=4.0))


async def netbox_journal(host: str, port: int, networks: tuple[str, ...]) -> object:
    url = f"http://{host}:{port}"
    with session_with(url, NetworkLimits(networks, timeout_s=4.0)) as session:
        return await asyncio.to_thread(session.get, f"{url}/api/")


async def mail(host: str, port: int, networks: tuple[str, ...]) -> object:
    route = replace(
        ROUTE, kind="email", secret="", url=f"smtp://{host}:{port}", sender="a@example.org", to=("b@example.org",)
    )
    await MailTarget("c1", Kept({})).deliver(PAGE, replace(route, networks=networks))
    return None


async def apprise(host: str, port: int, networks: tuple[str, ...]) -> object:
    await AppriseTarget("c1", Kept({"url": f"jsons://{host}:{port}/x"})).deliver(
        PAGE, replace(ROUTE, kind="apprise", networks=networks)
    )
    return None


async def oidc_endpoint(host: str, port: int, networks: tuple[str, ...]) -> object:
    settings = SignInSettings("https://login.example.org", "h", "s", "https://h.example.org", (), networks=networks)
    async with aiohttp.ClientSession() as session:
        return await OidcProvider(settings, Kept({}), session)._asked("GET", f"http://{host}:{port}/keys")  # noqa: SLF001


TOLD: tuple[Callable[[str, int, tuple[str, ...]], Awaitable[object]], ...] = (
    webhook, netbox_journal, mail, apprise, oidc_endpoint,
)  # fmt: skip
"""Drivers whose addresses come in a request, a route or another's answer."""
WRITTEN = (
    "127.0.0.1", "127.1", "0x7f.1", "0x7f000001", "017700000001", "2130706433", "127.0.0.1.", "localhost", "localhost.",
    "\u2460\u2461\u2466.0.0.1", "\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021", "[::ffff:127.0.0.1]", "[::1]",
    "example.org@127.0.0.1", NAME,
)  # fmt: skip
"""Ways to write this host."""


@pytest.mark.parametrize("ask", TOLD, ids=lambda ask: ask.__name__)
async def test_no_way_to_write_this_host_is_connected_to_unless_its_network_is_named(
    ask: Any, inside: Listener, rebound: list[str]
) -> None:
    """Mutants: the text of the host is judged (circled digits passed); the library resolves once more."""
    for host in WRITTEN:
        with pytest.raises((PortError, SignInError, OSError, ValueError)):
            await ask(host, inside.port, ("10.99.0.0/16",))
        assert inside.connected == 0, host
    assert rebound
    with suppress(*FAILURES):
        await ask("127.0.0.1", inside.port, ("127.0.0.0/8",))
    assert inside.connected, "a private network that is named is asked"


@pytest.mark.parametrize("ask", TOLD, ids=lambda ask: ask.__name__)
async def test_a_name_that_is_public_first_and_private_at_the_connect_is_not_connected_to(
    ask: Any, inside: Listener, rebound: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding. Mutant: check the name's addresses, then give the client the name."""
    monkeypatch.setattr("tests.contract.test_connected_peers.FIRST_PUBLIC", True)
    real = socket.socket.connect

    def no_way_out(one: socket.socket, address: Any) -> None:
        if address[0] == PUBLIC:
            raise OSError("there is no way to the public network here")
        real(one, address)

    monkeypatch.setattr(socket.socket, "connect", no_way_out)
    for _ in range(2):
        with pytest.raises((PortError, SignInError, OSError)):
            await asyncio.wait_for(ask(NAME, inside.port, ()), 15.0)
    assert len(rebound) >= 2, "it was private at last"
    assert inside.connected == 0


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("syslog://", "the controller's own machine"),
        ("dbus://", "apprise knows|own machine"),
        ("mailtos://a:b@example.org", "not asked over HTTP"),
        ("irc://example.org/x", "not asked over HTTP"),
        ("rsyslog://example.org", "not asked over HTTP"),
        ("fcm://project@api/token?keyfile=/etc/passwd", "keyfile"),
        ("amqps://u:p@example.org/x", "not asked over HTTP|apprise knows"),
        ("apprises://example.org/token", "not asked over HTTP"),
        ("jsons://example.org/x?%74emplate=file:///etc/passwd", "template"),
        ("workflows://example.org/a/b?TEMPLATE=http://169.254.169.254/", "template"),
        ("file:///etc/passwd", "apprise knows"),
        ("exec:///bin/true", "apprise knows"),
    ],
)
async def test_apprise_sends_to_services_of_the_list_alone(url: str, says: str) -> None:
    """By the real library. Mutants: a list of what is refused, which lacks what comes; parameters that read files."""
    with pytest.raises(PortError, match=says) as refused:
        await AppriseTarget("c1", Kept({"url": url})).deliver(PAGE, replace(ROUTE, kind="apprise", networks=("::/0",)))
    assert "passwd" not in str(refused.value)


def test_services_of_the_list_are_ones_that_the_library_has() -> None:
    """Every schema of the library is on the list or left out; one that is new is left out."""
    from apprise.manager_plugins import NotificationManager  # noqa: PLC0415 - slow to import

    from hostler.drivers.notify.apprise_target import SERVICES  # noqa: PLC0415

    manager: Any = NotificationManager()  # type: ignore[no-untyped-call]
    manager.load_modules()
    known = set(manager.schemas())
    assert known | {"messagebird", "msteams", "spush"} >= SERVICES
    for schema in SERVICES & known:
        module = __import__(manager[schema].__module__, fromlist=["*"])
        source = Path(str(module.__file__)).read_text()
        assert "subprocess" not in source, schema
        assert "import smtplib" not in source, schema


def test_what_is_refused_is_refused_before_it_is_sent(rebound: list[str]) -> None:
    """The error is one of the operating system's kind, so that every client takes it for a failed connection."""
    assert issubclass(AddressRefusedError, OSError)
    assert rebound == []
