"""Routes by which people are told: where, of what, how grave, and when. Values only; checked in `policy/documents`."""

from datetime import datetime, timedelta, timezone

from msgspec import Struct

TICKET_KINDS = ("jira", "servicenow")
"""Ticket systems (`drivers/tickets`): each of our tickets is one of theirs, and closed there it is looked at here."""

NETBOX = "netbox"
"""NetBox (`drivers/netbox`): each change of a ticket is an entry in the journal of its node's device."""

TOLD_EACH = (*TICKET_KINDS, NETBOX)
"""Targets that are told of each change of each ticket, by itself, and of nothing else."""

ROUTE_KINDS = ("webhook", "email", "slack", "teams", "pagerduty", "opsgenie", "alertmanager", "apprise", *TOLD_EACH)
"""Targets with a driver in `drivers/notify`, `drivers/tickets` or `drivers/netbox`."""

TOPICS = (
    "ticket",
    "incident",
    "brake",
    "cell",
    "node_failed",
    "node_out",
    "node_in",
    "maintenance",
    "approval",
    "rollout",
    "manual_test",
)
"""Kinds of news that are told of; a route that names none is told of all."""

TENANT_TOPICS = ("node_failed", "node_out", "node_in", "maintenance")
"""Topics that a tenant's route may be told of: what happens to its own nodes."""

ATTACH_MIB_MOST = 40
"""MiB of the largest bundle that is kept, and so of the largest that a ticket is given."""

SEVERITIES = ("info", "warning", "degraded", "critical", "catastrophic")
"""Names of `model.Severity`, gentlest first."""


class Route(Struct, frozen=True, forbid_unknown_fields=True):
    """One target and what it is told of.

    `secret` names where its key, password or whole URL is kept ("folder:NAME", "vault:MOUNT/PATH"); none stands here.
    `url` is for targets whose address is no secret (webhook, alertmanager, smtp://HOST:PORT); `networks` are private
    networks that it may lie in, which are refused otherwise; `ca` a PEM file beside the system's authorities.

    `pages` true: only what must be seen now. `topics`, `pools`, `tenants`, `sites` and `racks` narrow it, () is all;
    `least` is the gentlest severity told. `tenant`: the route is that tenant's, and told of its own nodes alone, in
    fields and no free text. What has one cause is one message: `wait_s` is how long the first is held back, in case it
    is over by then, `group_s` how long more of it joins. What is no page is collected for `digest_s` (0: told at once)
    and held back within `quiet` hours ("22:00-07:00", at `utc_offset`). A message is tried for `give_up_s`.

    Of ticket systems: `project` is Jira's project key or ServiceNow's assignment group, `issue_type` Jira's, `table`
    and `close_code` ServiceNow's. They are told of tickets, each by itself and at once, and given bundles of evidence
    of up to `attach_mib` MiB (0: none). NetBox is told of tickets in the same way, and given no bundles.
    """

    name: str
    kind: str
    url: str = ""
    secret: str = ""
    networks: tuple[str, ...] = ()
    ca: str = ""
    to: tuple[str, ...] = ()
    sender: str = ""
    pages: bool = False
    topics: tuple[str, ...] = ()
    least: str = "info"
    pools: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()
    tenant: str = ""
    wait_s: float = 30.0
    group_s: float = 300.0
    digest_s: float = 0.0
    quiet: tuple[str, ...] = ()
    utc_offset: str = "+00:00"
    timeout_s: float = 10.0
    give_up_s: float = 86_400.0
    project: str = ""
    issue_type: str = "Task"
    table: str = "incident"
    close_code: str = "Solution provided"
    attach_mib: int = ATTACH_MIB_MOST


class PageRules(Struct, frozen=True, forbid_unknown_fields=True):
    """Rules of what is a page: only what automation cannot finish. Each may be switched off.

    `tickets`: a ticket that is due now. `incidents`: many nodes share a fault, and their remedies are held. `brake`:
    the storm brake has latched. `cell`: the whole cell stands still until a person speaks (restored journal, doubted
    clock). `severity`: a condition as grave as this on a node that serves a customer, whose work there is lost; "" for
    none.
    """

    tickets: bool = True
    incidents: bool = True
    brake: bool = True
    cell: bool = True
    severity: str = "catastrophic"


def quiet_until(route: Route, now: datetime) -> datetime | None:
    """The end of the route's quiet hours that `now` lies in, None outside them."""
    local = now.astimezone(offset_of(route.utc_offset))
    for hours in route.quiet:
        begins, ends = minutes_of(hours)
        minute = local.hour * 60 + local.minute
        within = begins <= minute < ends if begins < ends else minute >= begins or minute < ends
        if within:
            midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
            over = midnight + timedelta(minutes=ends)
            return (over if over > local else over + timedelta(days=1)).astimezone(now.tzinfo)
    return None


def minutes_of(hours: str) -> tuple[int, int]:
    """The minutes of the day at which "22:00-07:00" begins and ends. Raises ValueError for anything else."""
    first, dash, last = hours.partition("-")
    begins, ends = _minute(first), _minute(last)
    if not dash or begins == ends:
        raise ValueError(f"'{hours[:40]}' is no span of hours")
    return begins, ends


def offset_of(text: str) -> timezone:
    """The offset of "+01:00". Raises ValueError for anything else."""
    if len(text) != 6 or text[0] not in "+-":
        raise ValueError(f"'{text[:40]}' is no offset from UTC")
    minutes = _minute(text[1:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


def _minute(text: str) -> int:
    hour, colon, minute = text.strip().partition(":")
    if not colon or len(minute) != 2 or not (hour + minute).isdecimal() or not (hour + minute).isascii():
        raise ValueError(f"'{text[:40]}' is no time of day")
    if not (0 <= int(hour) < 24 and 0 <= int(minute) < 60):
        raise ValueError(f"'{text[:40]}' is no time of day")
    return int(hour) * 60 + int(minute)
