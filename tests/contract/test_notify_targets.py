"""Targets of notifications, each played by a server that speaks its documented API, well and badly."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from email.message import Message as Letter
from email.parser import BytesParser
from email.policy import default as default_policy
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from msgspec.structs import replace

from hostler.core.notify.messages import Message
from hostler.core.state.model import Severity
from hostler.core.state.notify_routes import Route
from hostler.drivers.notify.http_targets import http_targets
from hostler.drivers.notify.mail import MailTarget
from hostler.drivers.target_http import is_allowed, trust
from hostler.ports import BusyTargetError, ExcessError, NotificationDriver, RefusedError, Secret, UnreachableError
from hostler.sim.bmc.tls_certificates import self_signed
from tests.contract.notify_twin import FIELDS, NotifyTwin, notify_twin, verify

LOOPBACK = ("127.0.0.0/8",)
KINDS = ("webhook", "slack", "teams", "pagerduty", "opsgenie", "alertmanager")
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PAGE = Message(
    id="c1/ticket/7/1",
    route="r",
    key="c1/ticket/7",
    action="open",
    topic="ticket",
    severity=Severity.critical,
    page=True,
    summary="n1: <!channel> see [here](https://evil.example) & mend it",
    seq=7,
    since=NOW,
    at=NOW,
    nodes=("n1",),
    pool="train",
    details={"ticket": "n1-t7", "hardware": "SN-1"},
)
OVER = replace(PAGE, id="c1/ticket/7/2", action="over", at=NOW + timedelta(hours=1), summary="over: mended")


class Kept:
    """Secrets as they are kept for a test; none where it says so."""

    def __init__(self, fields: dict[str, str]) -> None:
        self.fields = fields

    async def read(self, name: str, *, anew: bool = False) -> Secret:
        if not self.fields:
            raise RefusedError(f"no secret {name}")
        return Secret(self.fields)


@pytest.fixture
async def twin() -> AsyncIterator[NotifyTwin]:
    async with notify_twin() as running:
        yield running


def route_to(twin: NotifyTwin, kind: str, **more: Any) -> Route:
    url = {"webhook": f"{twin.url}/hook", "slack": "", "teams": ""}.get(kind, twin.url)
    return Route("r", kind, url=url, secret="folder:x", **{"networks": LOOPBACK, "timeout_s": 5.0, **more})


def driver(twin: NotifyTwin, kind: str) -> NotificationDriver:
    own = {"slack": {"url": f"{twin.url}/slack/T/B/secret"}, "teams": {"url": f"{twin.url}/teams/secret"}}
    return http_targets("c1", Kept({**FIELDS, **own.get(kind, {})}))[kind]


@pytest.mark.parametrize("kind", KINDS)
async def test_each_takes_what_begins_what_ends_and_what_is_sent_twice(twin: NotifyTwin, kind: str) -> None:
    target, route = driver(twin, kind), route_to(twin, kind)
    for message in (PAGE, PAGE, OVER):
        await target.deliver(message, route)
    if kind == "pagerduty":
        assert (twin.paged, twin.open) == ([PAGE.key], {})
    if kind == "opsgenie":
        assert not twin.open
    if kind == "alertmanager":
        [alert] = twin.open.values()
        assert datetime.fromisoformat(alert["endsAt"]) == OVER.at
    if kind == "webhook":
        assert [body["type"] for _, body in twin.taken] == ["dev.hostler.ticket.open", "dev.hostler.ticket.over"]
    if kind in ("slack", "teams"):
        assert len(twin.taken) == 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("action", ["note", "digest", "test"])
async def test_what_nothing_ends_opens_nothing_that_stays(twin: NotifyTwin, kind: str, action: str) -> None:
    note = replace(PAGE, action=action, page=False, severity=Severity.info, lines=("one", "two"))
    await driver(twin, kind).deliver(note, route_to(twin, kind))
    assert not twin.paged
    if kind == "alertmanager":
        [alert] = twin.open.values()
        assert datetime.fromisoformat(alert["endsAt"]) - NOW < timedelta(minutes=10)


FAULTS = {
    "429": BusyTargetError,
    "429 date": BusyTargetError,
    "503": BusyTargetError,
    "500": UnreachableError,
    "401": UnreachableError,
    "403": UnreachableError,
    "400": RefusedError,
    "410": RefusedError,
    "413": RefusedError,
    "redirect": UnreachableError,
    "reset": UnreachableError,
    "flood": ExcessError,
    "hang": UnreachableError,
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", ["webhook", "slack", "pagerduty"])
async def test_a_bad_answer_says_whether_to_send_again_and_tells_no_secret(
    twin: NotifyTwin, kind: str, fault: str
) -> None:
    twin.faults.append(fault)
    timeout_s = 0.3 if fault == "hang" else 5.0
    with pytest.raises((UnreachableError, RefusedError)) as failed:
        await driver(twin, kind).deliver(PAGE, route_to(twin, kind, timeout_s=timeout_s))
    assert type(failed.value) is FAULTS[fault]
    if fault.startswith("429"):
        assert isinstance(failed.value, BusyTargetError)
        assert failed.value.again_s == 7.0
    assert not twin.elsewhere, "a redirect is not followed: a signed message is shown to nobody else"
    told = str(failed.value)
    assert not any(secret in told for secret in (*FIELDS.values(), "/slack/T/B/secret", "T/B"))


@pytest.mark.parametrize("kind", ["slack", "teams", "pagerduty", "opsgenie"])
async def test_a_success_that_is_none_is_none(twin: NotifyTwin, kind: str) -> None:
    """Mutant: any 200 counts."""
    twin.faults.append("200 error")
    with pytest.raises((UnreachableError, RefusedError)):
        await driver(twin, kind).deliver(PAGE, route_to(twin, kind))


async def test_a_chat_is_shown_text_that_mentions_nobody_and_links_nowhere(twin: NotifyTwin) -> None:
    for kind in ("slack", "teams"):
        await driver(twin, kind).deliver(PAGE, route_to(twin, kind))
    slack, teams = (body for _, body in twin.taken)
    assert "<!channel>" not in json.dumps(slack)
    assert "&lt;!channel&gt;" in slack["text"]
    assert {block["type"] for block in teams["attachments"][0]["content"]["body"]} == {"RichTextBlock"}


async def test_a_signature_binds_id_moment_and_body(twin: NotifyTwin) -> None:
    await driver(twin, "webhook").deliver(PAGE, route_to(twin, "webhook"))
    body = twin.seen[0].encode()
    now = int(datetime.now(UTC).timestamp())
    assert verify({"webhook-id": PAGE.id, "webhook-timestamp": str(now), "webhook-signature": "v1,AAAA"}, body)
    assert len(twin.taken) == 1, "the twin has verified the one that came"


@pytest.mark.parametrize("fields", [{}, {"other": "x"}, {"key": "short"}, {"key": "whsec_%%%"}, {"key": "a\nb" * 20}])
async def test_a_secret_that_is_not_there_or_no_key_is_mended_and_sent_then(
    twin: NotifyTwin, fields: dict[str, str]
) -> None:
    with pytest.raises(UnreachableError):
        await http_targets("c1", Kept(fields))["webhook"].deliver(PAGE, route_to(twin, "webhook"))
    assert not twin.seen


@pytest.mark.parametrize(
    ("url", "networks"),
    [
        ("https://127.0.0.1:9/x", ()),
        ("https://localhost:9/x", ()),
        ("https://169.254.169.254/latest", ("10.0.0.0/8",)),
        ("https://[::ffff:10.0.0.1]/x", ()),
    ],
    ids=["loopback", "name of loopback", "metadata", "mapped"],
)
async def test_a_private_address_that_nobody_named_is_not_asked(url: str, networks: tuple[str, ...]) -> None:
    """Mutant: addresses are looked at, names are not."""
    route = Route("r", "webhook", url=url, secret="folder:x", networks=networks, timeout_s=5.0)
    with pytest.raises((RefusedError, UnreachableError), match="private network"):
        await http_targets("c1", Kept(FIELDS))["webhook"].deliver(PAGE, route)


@pytest.mark.parametrize(
    ("address", "allowed"),
    [("8.8.8.8", True), ("10.1.2.3", False), ("224.0.0.1", False), ("::1", False), ("fe80::1%eth0", False)],
)
def test_only_public_addresses_need_no_name(address: str, allowed: bool) -> None:
    assert is_allowed(address, ()) is allowed
    assert is_allowed("10.1.2.3", ("10.0.0.0/8",))


@pytest.mark.parametrize("named", [True, False], ids=["own name", "another name"])
async def test_a_certificate_of_another_name_is_shown_nothing(named: bool, tmp_path: Any) -> None:
    certificate = self_signed(datetime.now(UTC), "hook.example")
    ca = tmp_path / "ca.pem"
    ca.write_bytes(certificate.certificate)
    host = "127.0.0.1" if named else "127.0.0.2"
    async with notify_twin(certificate.server_context(), host) as twin:
        url = twin.url
        route = Route(
            "r", "webhook", url=f"{url}/hook", secret="folder:x", networks=LOOPBACK, ca=str(ca), timeout_s=5.0
        )
        target = http_targets("c1", Kept(FIELDS))["webhook"]
        if named:
            await target.deliver(PAGE, route)
            with pytest.raises(UnreachableError, match="certificate"):
                await target.deliver(PAGE, replace(route, ca=""))
        else:
            with pytest.raises(UnreachableError, match="certificate"):
                await target.deliver(PAGE, route)
        assert len(twin.seen) == int(named)


# --- mail


class Mailbox:
    """The handler of a mail server: keeps letters, and answers RCPT and DATA as told."""

    def __init__(self) -> None:
        self.letters: list[tuple[list[str], Letter]] = []
        self.data = "250 OK"
        self.refuses: set[str] = set()

    async def handle_RCPT(  # noqa: N802 - the library's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refuses:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - the same
        if self.data.startswith("250"):
            assert isinstance(envelope.content, bytes)
            self.letters.append(
                (list(envelope.rcpt_tos), BytesParser(policy=default_policy).parsebytes(envelope.content))
            )
        return self.data


class MailServer(Controller):
    """A server on a free port of loopback; with `tls` it offers STARTTLS, and asks for it."""

    def __init__(
        self, box: Mailbox, tls: ssl.SSLContext | None = None, password: str = "", host: str = "127.0.0.1"
    ) -> None:
        self._authenticates = password
        super().__init__(
            box,
            hostname=host,
            port=0,
            tls_context=tls,
            require_starttls=tls is not None,
            auth_required=bool(password),
            authenticator=self._check if password else None,
        )

    def _check(self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        return AuthResult(success=data.password.decode() == self._authenticates, handled=False)

    def _trigger_server(self) -> None:
        """The library asks its own port by number, which is only known once it listens."""
        listening: Any = self.server
        self.port = listening.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]


@pytest.fixture
def box() -> Mailbox:
    return Mailbox()


@pytest.fixture
def mailing(box: Mailbox) -> Iterator[MailServer]:
    server = MailServer(box)
    server.start()
    yield server
    server.stop()


def mail_route(server: Controller, **more: Any) -> Route:
    given: dict[str, Any] = {
        "url": f"smtp://127.0.0.1:{server.port}",
        "to": ("ops@example.org", "night@example.org"),
        "sender": "hostler@example.org",
        "networks": LOOPBACK,
        "timeout_s": 5.0,
        **more,
    }
    return Route("m", "email", **given)


async def test_a_mail_has_one_id_however_often_it_is_sent_and_belongs_to_its_thread(
    box: Mailbox, mailing: MailServer
) -> None:
    target = MailTarget("c1", Kept({}))
    for message in (PAGE, PAGE, OVER):
        await target.deliver(message, mail_route(mailing))
    first, again, over = (letter for _, letter in box.letters)
    assert first["Message-ID"] == again["Message-ID"] != over["Message-ID"]
    assert over["In-Reply-To"] == first["Message-ID"]
    assert first["Subject"].strip().startswith("[Hostler c1] page: n1:")
    assert box.letters[0][0] == ["ops@example.org", "night@example.org"]


async def test_a_summary_with_line_breaks_makes_no_header(box: Mailbox, mailing: MailServer) -> None:
    evil = replace(PAGE, summary="n1: x\r\nBcc: everybody@example.org\r\n\r\nhello")
    await MailTarget("c1", Kept({})).deliver(evil, mail_route(mailing))
    assert box.letters[0][1]["Bcc"] is None


@pytest.mark.parametrize(("said", "error"), [("451 later", UnreachableError), ("554 spam", RefusedError)])
async def test_a_mail_server_says_no_for_now_or_for_good(
    box: Mailbox, mailing: MailServer, said: str, error: type[Exception]
) -> None:
    box.data = said
    with pytest.raises(error):
        await MailTarget("c1", Kept({})).deliver(PAGE, mail_route(mailing))


async def test_one_address_that_is_refused_keeps_no_mail_from_the_others(box: Mailbox, mailing: MailServer) -> None:
    box.refuses = {"night@example.org"}
    await MailTarget("c1", Kept({})).deliver(PAGE, mail_route(mailing))
    assert [to for to, _ in box.letters] == [["ops@example.org"]]
    box.refuses.add("ops@example.org")
    with pytest.raises(RefusedError):
        await MailTarget("c1", Kept({})).deliver(PAGE, mail_route(mailing))


@pytest.mark.parametrize("case", ["good", "wrong password", "another name", "not trusted", "no TLS"])
async def test_a_password_is_shown_under_tls_to_the_right_name_alone(case: str, box: Mailbox, tmp_path: Any) -> None:
    certificate = self_signed(datetime.now(UTC), "mx.example")
    ca = tmp_path / "ca.pem"
    ca.write_bytes(certificate.certificate)
    host = "127.0.0.2" if case == "another name" else "127.0.0.1"
    server = MailServer(box, None if case == "no TLS" else certificate.server_context(), "sesame", host)
    server.start()
    try:
        where = {"url": f"smtp://{host}:{server.port}", "ca": "" if case == "not trusted" else str(ca)}
        route = mail_route(server, secret="folder:mail", **where)
        password = "wrong" if case == "wrong password" else "sesame"
        target = MailTarget("c1", Kept({"username": "hostler", "password": password}))
        if case == "good":
            await target.deliver(PAGE, route)
        else:
            told = {"another name": "TLS", "not trusted": "TLS", "wrong password": "535", "no TLS": "NotSupported"}
            with pytest.raises(UnreachableError, match=told[case]):
                await target.deliver(PAGE, route)
        assert len(box.letters) == int(case == "good")
    finally:
        server.stop()
        trust.cache_clear()


async def test_a_mail_server_that_dawdles_is_cut_off() -> None:
    """A greeting that never ends; the thread that waits for it ends with the time that there is."""
    gone = asyncio.Event()

    async def drips(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220-hello\r\n")
        await reader.read()
        gone.set()
        writer.close()

    server = await asyncio.start_server(drips, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        route = Route(
            "m", "email", f"smtp://127.0.0.1:{port}", to=("a@b.c",), sender="d@e.f", networks=LOOPBACK, timeout_s=60.0
        )
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await MailTarget("c1", Kept({})).deliver(PAGE, route)
        await asyncio.wait_for(gone.wait(), 30)
