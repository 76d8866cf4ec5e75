"""Mail by SMTP: with TLS wherever a password is shown or the network is not named as the operator's own.

The standard library's client works in a thread; a slow server is cut off when the time is up.
"""

import asyncio
import hashlib
import smtplib
import socket
import ssl
from contextlib import suppress
from email.message import EmailMessage
from email.utils import format_datetime
from urllib.parse import urlsplit

from hostler.core.notify.messages import Message
from hostler.core.state.notify_routes import Route
from hostler.drivers.notify import wire
from hostler.drivers.notify.http_targets import Fields, fields_of
from hostler.drivers.target_http import allowed_addresses, check_literal, trust
from hostler.logs.structured import logger
from hostler.ports import RefusedError, Secrets, UnreachableError

PORTS = {"smtp": 587, "smtps": 465}
_LATER = frozenset({530, 534, 535, 538, 454})
"""A password or TLS is wanted: a person mends it, and it is sent then."""

log = logger()


class MailTarget:
    """A `ports.NotificationDriver` for smtp://HOST[:PORT] (STARTTLS) and smtps://HOST[:PORT]."""

    def __init__(self, cell: str, secrets: Secrets) -> None:
        self._cell = cell
        self._secrets = secrets

    async def deliver(self, message: Message, route: Route) -> None:
        """Send one letter to every address of the route."""
        fields = await fields_of(self._secrets, route)
        letter = mail(message, self._cell, route)
        post = _Post(route, fields)
        try:
            refused = await asyncio.to_thread(post.send, letter)
        finally:
            post.cut()
        for address in refused:
            log.warning("mail_address_refused", route=route.name, address=address)


def mail(message: Message, cell: str, route: Route) -> EmailMessage:
    """The letter; its Message-ID is the same however often it is sent, and what belongs together is one thread."""
    subject, text = wire.mail_text(message, cell)
    domain = route.sender.partition("@")[2]
    letter = EmailMessage()
    letter["Subject"], letter["From"], letter["To"] = subject, route.sender, ", ".join(route.to)
    letter["Date"] = format_datetime(message.at)
    letter["Message-ID"] = _identity(message.id, domain)
    if message.id != f"{message.key}/1":
        letter["In-Reply-To"] = letter["References"] = _identity(f"{message.key}/1", domain)
    letter["Auto-Submitted"] = "auto-generated"
    letter["X-Hostler-Key"] = message.key
    letter.set_content(text)
    return letter


def _identity(text: str, domain: str) -> str:
    return f"<{hashlib.sha256(text.encode()).hexdigest()[:32]}@{domain}>"


class _Post:
    """One conversation with a server, in a thread; `cut` ends it from outside."""

    def __init__(self, route: Route, fields: Fields) -> None:
        parts = urlsplit(route.url)
        self._route = route
        self._fields = fields
        self._host = parts.hostname or ""
        self._port = parts.port or PORTS[parts.scheme]
        self._tls = parts.scheme == "smtps"
        self._socket: socket.socket | None = None

    def send(self, letter: EmailMessage) -> list[str]:
        """The addresses that were refused beside others that were taken. Raises RefusedError, UnreachableError."""
        try:
            return self._sent(letter)
        except smtplib.SMTPRecipientsRefused as error:
            codes = {code for code, _ in error.recipients.values()}
            told = f"{self._host} refuses every address ({', '.join(map(str, sorted(codes)))}); correct the route's to"
            raise (RefusedError(told) if min(codes) >= 500 else UnreachableError(told)) from None
        except smtplib.SMTPResponseException as error:
            told = f"{self._host} answered {error.smtp_code}; see the mail server's log"
            final = error.smtp_code >= 500 and error.smtp_code not in _LATER
            raise (RefusedError(told) if final else UnreachableError(told)) from None
        except ssl.SSLError as error:
            raise UnreachableError(
                f"{self._host}: TLS failed: {error.reason or type(error).__name__}"
                "; check the mail server's certificate, or name its authority in the route"
            ) from None
        except (smtplib.SMTPException, OSError, ValueError) as error:
            raise UnreachableError(
                f"{self._host} cannot be reached: {type(error).__name__}"
                "; check the route's host and port, and the firewall between"
            ) from None

    def cut(self) -> None:
        """Shut the connection down, where one stands; the thread that waits on it ends."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _sent(self, letter: EmailMessage) -> list[str]:
        self._socket = self._connected()
        with self._socket, _Client(self._socket, self._host, self._route.timeout_s) as client:
            if not self._tls:
                self._start_tls(client)
            if user := self._fields.get("username"):
                client.login(user, wire.demand_field(self._fields, "password"))
            return list(client.send_message(letter))

    def _start_tls(self, client: "_Client") -> None:
        client.ehlo_or_helo_if_needed()
        own = bool(self._route.networks) and not self._fields
        if own and not client.has_extn("starttls"):
            return  # a relay in the operator's own network, and nothing secret is shown
        client.starttls(context=trust(self._route.ca))
        client.ehlo()

    def _connected(self) -> socket.socket:
        """A connection to an address that is allowed, under TLS where it begins with it."""
        check_literal(self._host, self._route.networks)
        found = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        address = allowed_addresses(self._host, found, self._route.networks)[0][4]
        plain = socket.create_connection((str(address[0]), int(address[1])), self._route.timeout_s)
        if not self._tls:
            return plain
        return trust(self._route.ca).wrap_socket(plain, server_hostname=self._host)


class _Client(smtplib.SMTP):
    """The library's client over a connection that stands: the address that was checked is the one that is used."""

    def __init__(self, connection: socket.socket, host: str, timeout_s: float) -> None:
        self._connection = connection
        self._checked = host
        super().__init__(host, connection.getpeername()[1], local_hostname="hostler", timeout=timeout_s)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:  # noqa: ARG002 - the library's hook
        return self._connection
