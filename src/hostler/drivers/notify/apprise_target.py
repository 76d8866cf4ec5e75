"""Targets for which there is no driver of ours, through the library apprise: some 180 services, each by an address.

What the library reads of an answer is yes or no; it ends nothing and joins nothing, so each message stands by itself.
"""

import asyncio
import socket
from typing import Any

from hostler.core.notify.messages import Message
from hostler.core.state.notify_routes import Route
from hostler.drivers.notify import wire
from hostler.drivers.notify.http_targets import fields_of
from hostler.drivers.target_http import allowed_addresses, check_literal
from hostler.ports import Secrets, UnreachableError

OF_THIS_MACHINE = frozenset({"syslog", "dbus", "qt", "glib", "kde", "gnome", "windows", "macosx"})
"""Services of the library that show a message on the machine it runs on, the controller's."""
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
    if _named(service) in OF_THIS_MACHINE:
        raise UnreachableError(
            f"{_named(service)} shows messages on the controller's own machine; name another service"
        )
    return service


async def _check_way(service: Any, route: Route) -> None:
    """Refuse plain text and private networks that the route does not name.

    Of a service that people run themselves, whose address has a host, the host is looked at; the library asks for its
    address once more itself. The others have one address of their maker's.
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
