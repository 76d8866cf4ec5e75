"""Checks of a route: a target that nobody knows, an address that would show a secret, hours that are none."""

from collections.abc import Iterator
from ipaddress import ip_network

from hostler.core.state.input_problems import WrongEntry
from hostler.core.state.notify_routes import (
    ATTACH_MIB_MOST,
    ROUTE_KINDS,
    SEVERITIES,
    TENANT_TOPICS,
    TOLD_EACH,
    TOPICS,
    Route,
    minutes_of,
    offset_of,
)

NEEDS_URL = ("webhook", "alertmanager", "email", *TOLD_EACH)
URL_IN_SECRET = ("slack", "teams", "apprise")
NEEDS_SECRET = ("slack", "teams", "apprise", "pagerduty", "opsgenie", "webhook", *TOLD_EACH)
ADDRESSES_MAX = 50
NAME_MAX = 63
TIMEOUT_MOST_S = 60.0


def route_problems(route: Route) -> Iterator[WrongEntry]:
    """Problems of the route."""
    if route.kind not in ROUTE_KINDS:
        yield WrongEntry(f"no kind '{route.kind[:40]}'", f"write one of {', '.join(ROUTE_KINDS)}")
        return
    if not route.name.replace("-", "").replace("_", "").isalnum() or len(route.name) > NAME_MAX:
        yield WrongEntry("its name is none that a route may have", f"use up to {NAME_MAX} letters, digits, - and _")
    yield from _target_problems(route)
    yield from _mail_problems(route)
    yield from _ticket_problems(route)
    yield from _filter_problems(route)
    yield from _time_problems(route)


def _target_problems(route: Route) -> Iterator[WrongEntry]:
    if route.kind in NEEDS_URL and not route.url:
        yield WrongEntry(
            "url is missing", "add url: smtp://HOST:PORT" if route.kind == "email" else "add url: https://…"
        )
    if route.kind in URL_IN_SECRET and route.url:
        yield WrongEntry(
            f"the url of {route.kind} is itself a secret", "keep it in a secret, as its field url, and name the secret"
        )
    if route.kind in NEEDS_SECRET and not route.secret:
        yield WrongEntry("secret is missing", "add secret: folder:NAME or vault:MOUNT/PATH")
    if route.secret and not (":" in route.secret and all(route.secret.partition(":"))):
        yield WrongEntry(f"'{route.secret[:60]}' names no secret", "write folder:NAME or vault:MOUNT/PATH")
    yield from _url_problems(route)
    for network in route.networks:
        try:
            ip_network(network)
        except ValueError:
            yield WrongEntry(f"'{network[:60]}' is no network", "write 10.20.0.0/16")


def _url_problems(route: Route) -> Iterator[WrongEntry]:
    """Plain text is for networks that the operator names as their own."""
    scheme, separator, rest = route.url.partition("://")
    allowed = ("smtp", "smtps") if route.kind == "email" else ("https", "http")
    if route.url and (not separator or not rest or scheme not in allowed):
        yield WrongEntry(f"'{route.url[:60]}' is no address", f"write {allowed[0]}://HOST")
    elif "@" in rest.partition("/")[0]:
        yield WrongEntry("the url has a password in it", "keep it in a secret")
    elif any(character.isspace() or not character.isprintable() for character in route.url):
        yield WrongEntry("the url has spaces or control characters", "remove them")
    elif scheme == "http" and not route.networks:
        yield WrongEntry("plain http can be read and changed on its way", "write https://…, or name its networks")


def _mail_problems(route: Route) -> Iterator[WrongEntry]:
    if route.kind != "email":
        return
    if not route.to or not route.sender:
        yield WrongEntry("to or sender is missing", "add to: [somebody@example.org] and sender: hostler@example.org")
    if len(route.to) > ADDRESSES_MAX:
        yield WrongEntry(
            f"{len(route.to)} addresses are too many", f"write at most {ADDRESSES_MAX}, or a list's address"
        )
    for address in (*route.to, route.sender):
        user, at, domain = address.partition("@")
        plain = address.isascii() and address.isprintable() and not any(c in address for c in " ,;<>\"'")
        if address and not (user and at and domain and "@" not in domain and plain):
            yield WrongEntry(f"'{address[:60]}' is no address", "write somebody@example.org")


def _ticket_problems(route: Route) -> Iterator[WrongEntry]:
    """Tickets go to a ticket system one by one: what collects or holds back messages means nothing there."""
    words = (("project", route.project), ("issue_type", route.issue_type), ("close_code", route.close_code))
    for name, value in (*words, ("table", route.table)):
        if len(value) > NAME_MAX or not value.isprintable():
            yield WrongEntry(f"{name} '{value[:40]}' is no name", f"write up to {NAME_MAX} printable characters")
    if route.kind not in TOLD_EACH:
        return
    if route.kind == "jira" and not (route.project.isascii() and route.project.replace("_", "").isalnum()):
        yield WrongEntry("project is no key", "write project: KEY, the letters before the number of its issues")
    if not (route.table.isascii() and route.table.replace("_", "").isalnum()):
        yield WrongEntry(f"'{route.table[:40]}' is no table", "write table: incident")
    if route.tenant or route.digest_s or route.quiet or route.pages:
        yield WrongEntry(
            f"{route.kind} takes no tenant, digest_s, quiet or pages",
            "leave them out: every ticket that the filters let in is sent there",
        )
    if not 0 <= route.attach_mib <= ATTACH_MIB_MOST:
        yield WrongEntry(
            f"attach_mib {route.attach_mib} is out of range", f"write 0 (no evidence is attached) to {ATTACH_MIB_MOST}"
        )
    if any(topic != "ticket" for topic in route.topics):
        yield WrongEntry(f"{route.kind} takes no topics but ticket", "leave topics out")


def _filter_problems(route: Route) -> Iterator[WrongEntry]:
    for topic in route.topics:
        if topic not in TOPICS:
            yield WrongEntry(f"no topic '{topic[:40]}'", f"write some of {', '.join(TOPICS)}")
        elif route.tenant and topic not in TENANT_TOPICS:
            yield WrongEntry(f"a tenant's route is not told of '{topic}'", f"write some of {', '.join(TENANT_TOPICS)}")
    if route.least not in SEVERITIES:
        yield WrongEntry(f"no severity '{route.least[:40]}'", f"write one of {', '.join(SEVERITIES)}")


def _time_problems(route: Route) -> Iterator[WrongEntry]:
    for hours in route.quiet:
        try:
            minutes_of(hours)
        except ValueError as error:
            yield WrongEntry(str(error), "write 22:00-07:00")
    try:
        offset_of(route.utc_offset)
    except ValueError as error:
        yield WrongEntry(str(error), "write +01:00")
    if not 0 < route.timeout_s <= TIMEOUT_MOST_S:
        yield WrongEntry(f"timeout_s {route.timeout_s:g} is out of range", f"write 1 to {TIMEOUT_MOST_S:g}")
