"""Targets for which there is no driver of ours, through the library apprise: some 180 services, each by an address.

What the library reads of an answer is yes or no; it ends nothing and joins nothing, so each message stands by itself.
"""

import asyncio
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any
from urllib.parse import unquote_plus

from hostler.core.notify.messages import Message
from hostler.core.state.notify_routes import Route
from hostler.drivers.notify import wire
from hostler.drivers.notify.http_targets import fields_of
from hostler.drivers.target_http import allowed_addresses, check_literal
from hostler.ports import Secrets, UnreachableError
from hostler.runtime.reachable_addresses import AddressRefusedError, ReachableNetworks, demand_allowed

SERVICES = frozenset((
    "46elks", "acs", "bark", "barks", "betterstack", "bulksms", "bulkvs", "burstsms", "clickatell", "clicksend",
    "cliq", "d7sms", "dingtalk", "discord", "elks", "feishu", "firehydrant", "flock", "form", "forms", "freemobile",
    "gchat", "goalert", "goalerts", "gotify", "gotifys", "groupme", "guilded", "hassio", "hassios", "httpsms",
    "ifttt", "ilert", "incidentio", "infobip", "jira", "join", "json", "jsons", "kavenegar", "kudosity", "lametric",
    "lametrics", "lark", "line", "mailersend", "mailgun", "mastodon", "mastodons", "matrix", "matrixs",
    "messagebird", "misskey", "misskeys", "mmost", "mmosts", "msg91", "msgbird", "msteams", "nctalk", "nctalks",
    "nexmo", "notica", "noticas", "notifiarr", "ntfy", "ntfys", "onesignal", "opsgenie", "pagerduty", "pagertree",
    "pbul", "plivo", "postmark", "pover", "prowl", "push", "pushdeer", "pushdeers", "pushed", "pushplus", "pushy",
    "resend", "revolt", "ringc", "rocket", "rockets", "ryver", "sendgrid", "signal", "signals", "signl4",
    "simplepush", "sinch", "slack", "smtp2go", "spike", "splunk", "spush", "squadcast", "synology", "synologys",
    "telnyx", "tgram", "threema", "twilio", "twist", "victorops", "voipms", "vonage", "webex", "wecombot",
    "whatsapp", "workflow", "workflows", "wxteams", "xmatters", "xml", "xmls", "zcliq", "zohocliq", "zoom", "zulip",
))  # fmt: skip
"""Services of the library that are asked over HTTP, at their maker's address or at a host that the address names.

Left out: what acts on this machine (syslog, dbus, desktops, USB lights), speaks other protocols (mail, IRC, XMPP, MQTT,
AMQP, SMPP, syslog by network), reads files of this machine, or hands a message on to services of its own.
"""
FILES = frozenset((
    "template", "attach", "attachment", "keyfile", "key_file", "pgpkey", "pgp", "include", "config", "cert",
    "certificate",
))  # fmt: skip
"""Parameters by which the library reads a file or another address."""
KINDS = ("info", "info", "warning", "failure", "failure")
"""The library's kinds of messages; a place is a `model.Severity`."""
GRACE_S = 5.0


class AppriseTarget:
    """A `ports.NotificationDriver`; the field `url` of the route's secret is an address of the library's."""

    def __init__(self, cell: str, secrets: Secrets) -> None:
        self._cell = cell
        self._secrets = secrets

    async def deliver(self, message: Message, route: Route) -> None:
        """Send the message once. The library tells no reason: what it does not deliver is sent again until given up."""
        fields = await fields_of(self._secrets, route)
        library = _library()
        service = _service(library, wire.demand_field(fields, "url"), route)
        sender = library.Apprise()
        sender.add(service)
        await _check_way(service, route)
        title, body = wire.mail_text(message, self._cell)
        try:
            async with asyncio.timeout(route.timeout_s + GRACE_S):
                with _within(ReachableNetworks(route.networks)):
                    taken = await sender.async_notify(
                        body=body, title=title, notify_type=_kind(message), body_format="text"
                    )
        except TimeoutError:
            raise UnreachableError(
                f"{_named(service)} did not answer within {route.timeout_s:g} s"
                "; see whether it is up, or raise the route's timeout_s"
            ) from None
        if not taken:
            raise UnreachableError(
                f"{_named(service)} did not take it, and the library tells no reason"
                "; try the address with the program `apprise` beside the controller"
            )


def _library() -> Any:
    """The library, which is an extra. Raises UnreachableError: a person installs it, and it is sent then."""
    try:
        import apprise  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        raise UnreachableError(
            "the library apprise is not installed beside the controller; install it with pip install 'hostler[apprise]'"
        ) from None
    return apprise


def _service(library: Any, url: str, route: Route) -> Any:
    """The service that the address names. Raises UnreachableError; no text of the address is told, it is a secret."""
    if wrong := sorted(name for name in _parameters(url) if name.lstrip("+-:") in FILES):
        raise UnreachableError(
            f"the address's parameter {wrong[0]} would read a file or another address on the controller; leave it out"
        )
    asset = library.AppriseAsset(
        app_id="Hostler",
        app_desc="Hostler",
        app_url="",
        http_redirects=False,
        storage_mode="memory",
        secure_logging=True,
        service_timeout=route.timeout_s,
        async_mode=True,
    )
    timeouts = f"{'&' if '?' in url else '?'}cto={route.timeout_s:g}&rto={route.timeout_s:g}"
    service = library.Apprise.instantiate(url + timeouts, asset=asset)
    if service is None:
        raise UnreachableError(
            "the secret's field url is no address that apprise knows; see its list of services, and write one address"
        )
    if _named(service) not in SERVICES:
        raise UnreachableError(
            f"{_named(service)} is not sent to: it acts on the controller's own machine, or is not asked over HTTP"
            "; name another service, or use another kind of route"
        )
    return service


def _parameters(url: str) -> set[str]:
    """Names of the address's parameters, in small letters, however they are written."""
    return {unquote_plus(one.partition("=")[0]).strip().lower() for one in re.split(r"[?&;]", url)[1:]}


async def _check_way(service: Any, route: Route) -> None:
    """Refuse plain text and private networks that the route does not name.

    Of a service that people run themselves, whose address has a host, the host is looked at, so that a person is told
    why; each connection is judged once more (`_judged`). The others have one address of their maker's.
    """
    own = bool(service.protocol)
    if own and not service.secure and not route.networks:
        raise UnreachableError(
            f"{_named(service)} is sent in plain text; write {_secured(service)}, or the route's networks"
        )
    if not own or not service.host:
        return
    check_literal(service.host, route.networks)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(service.host, service.port or 443, type=socket.SOCK_STREAM)
    except OSError as error:
        raise UnreachableError(
            f"{_named(service)}: its host has no address: {error.strerror}; correct the address in the secret"
        ) from None
    allowed_addresses(_named(service), found, route.networks)


_REACH: ContextVar[ReachableNetworks | None] = ContextVar("apprise_reach", default=None)
"""Addresses that the library may connect to in this context; it takes the context along to its threads."""


@cache
def _judge_connections() -> None:
    """Have every connection that is opened within a delivery be judged by its address, once for this process.

    Why an audit hook: the library brings a client of its own for each service and offers no place for ours. Python
    raises the event with the address that the socket is about to connect to, whichever client opens it.
    """
    sys.addaudithook(_judged)


def _judged(event: str, args: tuple[Any, ...]) -> None:
    if event not in ("socket.connect", "socket.sendto", "subprocess.Popen"):
        return
    reach = _REACH.get()
    if reach is None:
        return
    if event == "subprocess.Popen":
        raise AddressRefusedError("the library starts no program")
    address = args[1]
    demand_allowed(str(address[0]) if isinstance(address, tuple) else "a socket of this host", reach)


@contextmanager
def _within(reach: ReachableNetworks) -> Iterator[None]:
    """Judge what is connected to in this context, and in threads that it is taken along to."""
    _judge_connections()
    before = _REACH.set(reach)
    try:
        yield
    finally:
        _REACH.reset(before)


def _secured(service: Any) -> str:
    """The service's name with TLS, as an address begins with it."""
    secured = service.secure_protocol
    one = secured if isinstance(secured, str) else next(iter(secured or ()), "")
    return f"{one}://" if one else "another service"


def _named(service: Any) -> str:
    """The service by the word its address begins with."""
    return str(service.schema)


def _kind(message: Message) -> str:
    if message.action == "over":
        return "success"
    return KINDS[message.severity]
