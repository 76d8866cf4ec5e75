"""Columns of the API's objects: one table, for every list of the command line."""

from datetime import datetime
from typing import Any

from hostler.cli.list_view import FEW, Column, View, age, answers, clock, count, last_text, severity, steps, text_of
from hostler.client import routes
from hostler.core.state.counting import first_names

NODES = View(
    routes.NODES,
    (
        Column("NODE", "id"),
        Column("PHASE", "phase"),
        Column("FOR", "phase_since", age),
        Column("POOL", "pool"),
        Column("RACK", "position.rack"),
        Column("HEALTH", "severity", severity),
        Column("CONDITIONS", "conditions"),
        Column("PLAN", "plan"),
        Column("STEP", "step"),
        Column("WAITS FOR", "waiting"),
        Column("HOSTNAME", "hostname", wide=True),
        Column("SERIAL", "serial", wide=True),
        Column("SKU", "sku", wide=True),
        Column("TENANT", "tenant", wide=True),
        Column("SITE", "position.site", wide=True),
        Column("U", "position.u", wide=True),
        Column("CORDONED", "cordoned", wide=True),
        Column("HANDOVER", "handover", clock, wide=True),
    ),
    empty="no node matches",
)


def _condition(prefix: str = "") -> tuple[Column, ...]:
    """The columns of a condition that stands below `prefix` in its row."""
    return (
        Column("NODE", f"{prefix}node"),
        Column("CONDITION", f"{prefix}type"),
        Column("PART", f"{prefix}part"),
        Column("SEVERITY", f"{prefix}severity", severity),
        Column("SINCE", f"{prefix}since", age),
        Column("UNKNOWN FOR", f"{prefix}unknown_since", age),
        Column("LAST SEEN", f"{prefix}last_seen", age),
        Column("COUNT", f"{prefix}count"),
        Column("CLEARED BY", f"{prefix}clears"),
        Column("SEEN", f"{prefix}evidence", last_text),
        Column("OWNER", f"{prefix}owner", wide=True),
        Column("EXPIRES", f"{prefix}expires_at", age, wide=True),
        Column("ID", f"{prefix}id", wide=True),
    )


NODE_CONDITIONS = View("", _condition(), empty="no condition stands")

SKU_DIFFERENCES = View(
    "",
    (
        Column("ASPECT", "aspect"),
        Column("VERDICT", "verdict"),
        Column("SLOT", "slot"),
        Column("EXPECTED", "expected"),
        Column("FOUND", "found"),
        Column("WHAT TO DO", "advice", wide=True),
    ),
    name="aspect",
    empty="its SKU names nothing to compare",
)
FIRMWARE = View(
    "",
    (
        Column("COMPONENT", "component"),
        Column("REPORTED", "reported"),
        Column("STAGED", "staged", wide=True),
        Column("RECOVERY", "recovery", wide=True),
        Column("BASELINE", "baseline"),
        Column("ALLOWED", "allowed", wide=True),
        Column("WOULD", "act"),
        Column("WHY", "why"),
    ),
    name="component",
    empty="its SKU has no firmware baseline",
)

_STANDING = (
    Column("PHASE", "phase"),
    Column("POOL", "pool"),
    Column("PLAN", "plan"),
    Column("RACK", "rack", wide=True),
)

CONDITIONS = View(
    routes.CONDITIONS,
    (*_condition("condition."), *_STANDING),
    name="condition.id",
    empty="no condition stands",
    events=("condition_", "knowledge_", "phase_", "plan_"),
)

OBSERVATIONS = View(
    "",
    (
        Column("AT", "received", clock),
        Column("SOURCE", "source"),
        Column("KIND", "kind"),
        Column("COUNT", "count"),
        Column("TEXT", "text"),
        Column("FACTS", "facts", wide=True),
        Column("SPOOL", "spool", wide=True),
        Column("SEQUENCE", "sequence", wide=True),
    ),
    name="sequence",
    empty="nothing was observed",
)

AGENTS = View(
    routes.AGENTS,
    (
        Column("NODE", "node"),
        Column("HEARD", "heard"),
        Column("LAST", "last_heard", age),
        Column("VERSION", "version"),
        Column("RSS KIB", "rss_kib"),
        Column("CHECKS", "profiles", lambda told, _: "not said" if told is None else ",".join(told) or "none"),
    ),
    name="node",
    empty="no node matches",
)


def worded(value: Any, _now: datetime) -> str:
    """Names with their words or versions."""
    return ", ".join(f"{name} {word or 'silent'}" for name, word in value or ())


def few(value: Any, _now: datetime) -> str:
    """The first names of a list, and how many more there are."""
    return first_names([text_of(item) for item in value], FEW)


SHADOWS = View(
    routes.SHADOWS,
    (
        Column("RULE", "rule"),
        Column("WOULD HAVE MEANT", "remedy"),
        Column("CLASS", "act_class"),
        Column("TIMES", "times"),
        Column("WORKLOADS", "works"),
        Column("LAST", "last", age),
        Column("NODES", "nodes", few),
        Column("FIRST WAIT", "waits", wide=True),
    ),
    name="rule",
    empty="no rule in shadow has met anything",
)

WAITING = View(
    routes.WAITING,
    (
        Column("NODE", "node"),
        Column("WHAT", "what"),
        Column("FOR", "since", age),
        Column("GPU-HOURS", "gpu_hours"),
        Column("WAITS FOR", "blockers"),
        Column("ENDS WHEN", "ends_when"),
        Column("PHASE", "phase", wide=True),
        Column("POOL", "pool", wide=True),
    ),
    name="node",
    empty="nothing waits",
)

FABRIC_FINDINGS = View(
    "",
    (
        Column("KEY", "key", wide=True),
        Column("KIND", "kind"),
        Column("GRADE", "grade"),
        Column("WHAT", "what"),
        Column("DO", "steps", lambda steps, _: " ".join(steps)),
    ),
    name="key",
    empty="the network lies as designed",
)

FABRICS = View(
    routes.FABRICS,
    (
        Column("NETWORK", "name"),
        Column("VERDICT", "verdict"),
        Column("CABLES", "cables"),
        Column("HOSTS", "hosts"),
        Column("SWITCHES", "switches"),
        Column("FINDINGS", "findings"),
        Column("TICKETS", "tickets"),
        Column("LOOKED", "looked", age),
        Column("WHOLE", "good", age),
        Column("SAYS", "says"),
        Column("SUBNET", "subnet", lambda subnet, _: str(subnet["says"]), wide=True),
        Column("TEST DUE", "manual_test_due", wide=True),
        Column("OVERDUE", "manual_test_overdue"),
        Column("DESIGN", "design", lambda digest, _: str(digest)[:12], wide=True),
    ),
    name="name",
    empty="no network is registered",
    events=("fabric_",),
)

FABRIC_CASES = View(
    "",
    (
        Column("KEY", "key"),
        Column("KIND", "kind"),
        Column("GRADE", "grade"),
        Column("FOR", "since", age),
        Column("TICKET", "ticket"),
        Column("WHAT", "what"),
        Column("DO", "steps", lambda steps, _: " ".join(steps), wide=True),
        Column("WAITS", "waits"),
        Column("INCIDENT", "incident", wide=True),
    ),
    name="key",
    empty="no finding is open",
    events=("fabric_",),
)

_LINK = (
    Column("PORT", "a"),
    Column("DESIGNED", "z"),
    Column("FOUND", "a_found"),
    Column("RATE", "rate"),
    Column("FOUND RATE", "found_rate"),
    Column("STATE", "condition"),
    Column("FAULT", "fault"),
    Column("SEEN", "seen", age),
)

LINK_FAULTS = View(
    "",
    (
        Column("LINK", "a"),
        Column("TO", "z"),
        Column("CHECK", "check"),
        Column("GRADE", "grade"),
        Column("FOR", "since", age),
        Column("WHAT", "what"),
        Column("PARTS", "parts", wide=True),
        Column("TICKET", "ticket"),
        Column("WAITS", "waits"),
    ),
    name="a",
    empty="no link fails a check",
    events=("link_fault_",),
)

PORT_COUNTERS = View(
    "",
    (
        Column("PORT", "port"),
        Column("STATE", "state"),
        Column("LINK DOWNED", "link_downed"),
        Column("SYMBOL ERRORS", "symbol_errors"),
        Column("MODULE C", "temperature_c"),
        Column("MODULE", "module", wide=True),
        Column("CABLE", "cable", wide=True),
        Column("RX DBM", "rx_dbm", wide=True),
        Column("READ", "read", age),
    ),
    name="port",
    empty="no port has been read since the controller began",
)

FABRIC_LINKS = View("", _LINK, name="a", empty="no whole validation has seen such a cable")

LINKS = View(
    routes.LINKS,
    (Column("NODE", "node"), Column("NETWORK", "fabric"), *_LINK),
    name="a",
    empty="no network has it in its design, or none has been seen whole since the controller began",
)

FINDINGS = View(
    "",
    (
        Column("CLUSTER", "cluster"),
        Column("KIND", "kind"),
        Column("NAME", "name"),
        Column("", "bad", lambda bad, _: "BAD" if bad else "ok"),
        Column("SAYS", "text"),
        Column("DO", "instead"),
    ),
    name="name",
    empty="nothing was found",
)

POOLS = View(
    routes.POOLS,
    (
        Column("POOL", "pool.name"),
        Column("TENANT", "pool.tenant"),
        Column("CLUSTER", "pool.cluster"),
        Column("SKU", "pool.sku"),
        Column("RESERVED", "reserved"),
        Column("DELIVERED", "delivered"),
        Column("HEALTHY", "healthy"),
        Column("UNKNOWN", "unknown"),
        Column("DARK", "dark"),
        Column("IN USE", "in_use"),
        Column("SPARES", "spares"),
        Column("MODES", "pool.modes"),
        Column("BUDGET", "pool.budget", wide=True),
    ),
    name="pool.name",
    empty="no pool is configured",
    events=("node_", "phase_", "plan_", "config_", "mode_"),
)

PLANS = View(
    routes.PLANS,
    (
        Column("NODE", "node"),
        Column("PLAN", "name"),
        Column("STATE", "state"),
        Column("CLASS", "act_class"),
        Column("SINCE", "recorded_at", age),
        Column("STEPS", "steps", steps),
        Column("WHY", "causes"),
        Column("POOL", "pool", wide=True),
        Column("RULE", "rule", wide=True),
        Column("ID", "id", wide=True),
    ),
    empty="no active plan",
    events=("plan_",),
)

TICKETS = View(
    routes.TICKETS,
    (
        Column("TICKET", "id"),
        Column("NODE", "node"),
        Column("KIND", "kind"),
        Column("COMPONENT", "component"),
        Column("HARDWARE", "hardware"),
        Column("OPENED", "opened", age),
        Column("DUE", "due_by", clock),
        Column("OWNER", "owner"),
        Column("CLAIMED BY", "claimed_by"),
        Column("UNTIL", "claimed_until", age, wide=True),
        Column("DONE BY", "done_by"),
        Column("OUTSIDE", "outside", lambda links, _: ", ".join(link["key"] for link in links)),
        Column("SUMMARY", "summary"),
        Column("URL", "outside", lambda links, _: " ".join(link["url"] for link in links), wide=True),
        Column("FAULT", "fault", wide=True),
        Column("ACTION", "action", wide=True),
        Column("ACCOUNT", "account", wide=True),
        Column("UPDATED", "updated", clock, wide=True),
        Column("HANDOVER", "handover", clock, wide=True),
    ),
    empty="no ticket is open",
    events=("ticket_",),
)

APPROVALS = View(
    routes.APPROVALS,
    (
        Column("APPROVAL", "id"),
        Column("REQUEST", "request"),
        Column("ASKED BY", "person"),
        Column("FOR", "verb"),
        Column("ON", "target"),
        Column("NODES", "disturbs"),
        Column("GPUS", "gpus"),
        Column("POOLS", "pools"),
        Column("ASKED", "asked", age),
        Column("EXPIRES", "expires", age),
        Column("REASON", "reason"),
        Column("WHY", "why", wide=True),
        Column("CONFIGURATION", "configuration", wide=True),
    ),
    empty="nothing waits for a second person",
    events=("approval_",),
)

ROLLOUTS = View(
    routes.ROLLOUTS,
    (
        Column("ROLLOUT", "id"),
        Column("STATE", "state"),
        Column("CONFIGURATION", "sha256"),
        Column("BY", "person"),
        Column("STARTED", "started", age),
        Column("WAITS FOR", "waits_for"),
        Column("WHY", "why"),
        Column("APPROVED BY", "approved_by", wide=True),
        Column("ENDED BY", "ended_by", wide=True),
        Column("BEFORE", "before", wide=True),
        Column("REASON", "reason", wide=True),
    ),
    empty="no rollout",
    events=("rollout_", "slice_"),
)


RESTORE = View(
    routes.RESTORE_NODES,
    (
        Column("NODE", "id"),
        Column("HEARD", "heard"),
        Column("DIFFERS", "text"),
    ),
    empty="every node was heard and is as the journal has it",
    events=("node_compared", "restore_"),
)

DOMAIN_ACTS = View(
    routes.DOMAINS,
    (
        Column("DOMAIN", "scope"),
        Column("REMEDY", "remedy"),
        Column("STATE", "state"),
        Column("NODES", "nodes"),
        Column("STAGES", "stages"),
        Column("FOR", "since", age),
        Column("PERSON", "person"),
        Column("WAITS FOR", "waits_for"),
        Column("REASON", "reason", wide=True),
    ),
    name="scope",
    empty="no act on a whole domain waits or is under way",
    events=("condition_", "plan_", "waiting_"),
)

INCIDENTS = View(
    routes.INCIDENTS,
    (
        Column("INCIDENT", "id"),
        Column("BLAMES", "blames"),
        Column("STATE", "state"),
        Column("NODES", "nodes"),
        Column("OF", "size"),
        Column("SHOWING", "conditions"),
        Column("FOR", "opened", age),
        Column("TICKET", "ticket"),
        Column("OWNER", "owner"),
        Column("OR", "also", wide=True),
        Column("DUE", "deadline", age, wide=True),
        Column("CALM FOR", "calm_since", age, wide=True),
        Column("FIRST", "first", wide=True),
    ),
    empty="no incident is open",
    events=("incident_",),
)

HOLDS = View(
    routes.HOLDS,
    (
        Column("HOLD", "id"),
        Column("SCOPE", "scope"),
        Column("KIND", "kind"),
        Column("OWNER", "owner"),
        Column("SINCE", "since", age),
        Column("UNTIL", "until", age),
        Column("REASON", "reason"),
        Column("TICKET", "ticket", wide=True),
    ),
    empty="nothing is held",
    events=("hold_",),
)

WINDOWS = View(
    routes.MAINTENANCE,
    (
        Column("WINDOW", "id"),
        Column("SCOPE", "scope"),
        Column("STARTS", "starts", clock),
        Column("ENDS", "ends", clock),
        Column("OWNER", "owner"),
        Column("ANSWERS", "answers", answers),
        Column("REASON", "reason"),
    ),
    empty="no maintenance window is set",
    events=("window_",),
)

HISTORY = View(
    "",
    (
        Column("AT", "at", clock),
        Column("SEQ", "seq"),
        Column("EVENT", "name"),
        Column("WHAT", "text"),
        Column("CAUSE", "cause", wide=True),
    ),
    name="seq",
    empty="nothing is recorded",
)

LANES = View(
    "",
    (
        Column("LANE", "lane"),
        Column("WHAT", "what"),
        Column("ON", "on"),
        Column("STATE", "state"),
        Column("SINCE", "since", clock),
        Column("UNTIL", "until", clock),
        Column("WHY", "text"),
        Column("SEQ", "seq", wide=True),
    ),
    name="what",
    empty="nothing is recorded",
)

MAP = View(
    "",
    (
        Column("NODE", "id"),
        Column("RACK", "rack"),
        Column("PHASE", "phase"),
        Column("HEALTH", "severity", severity),
        Column("COLOUR", "word"),
        Column("GROUP", "group"),
    ),
    name="id",
    empty="no node is known",
)

EVENTS = View(
    "",
    (
        Column("AT", "at", clock),
        Column("SEQ", "seq"),
        Column("EVENT", "name"),
        Column("ON", "subjects"),
        Column("WHAT", "text"),
        Column("CAUSE", "cause", wide=True),
    ),
    name="seq",
    empty="nothing is recorded",
)

_WORK = (
    Column("NODE", "node"),
    Column("RACK", "rack"),
    Column("STATE", "state"),
    Column("ACTION", "action"),
    Column("COMPONENT", "component"),
    Column("HARDWARE", "hardware"),
    Column("OPENED", "opened", age),
    Column("TICKET", "ticket"),
    Column("FAULT", "fault"),
    Column("WAITS FOR", "waits_for"),
    Column("UPDATED", "updated", clock, wide=True),
    Column("CLOSED", "closed", clock, wide=True),
    Column("ACCOUNT", "account", wide=True),
    Column("HANDOVER", "handover", clock, wide=True),
    Column("RESOLUTION", "resolution", wide=True),
)

WORK = View(routes.MAINTENANCE, _WORK, name="node", empty="no node is being worked on")
REPAIRS = View(routes.MAINTENANCE, _WORK, name="ticket", empty="no repair is recorded")

DEEDS = View(
    routes.MAINTENANCE,
    (
        Column("DONE AT", "at", clock),
        Column("DEED", "action"),
        Column("RESULT", "result"),
        Column("PART", "part"),
        Column("SLOT", "slot"),
    ),
    name="action",
    empty="nothing was done to its hardware",
)

NOTICES = View(
    routes.MAINTENANCE,
    (Column("LEAVES", "node"), Column("RACK", "rack"), Column("SINCE", "at", clock), Column("WHY", "reason")),
    name="node",
    empty="no node is about to leave",
)

TOKENS = View(
    "",
    (
        Column("TOKEN", "token"),
        Column("NAME", "grant.name"),
        Column("ROLE", "grant.role"),
        Column("SITE", "grant.site"),
        Column("POOL", "grant.pool"),
        Column("TENANT", "grant.tenant"),
        Column("NODE", "grant.node"),
        Column("EXPIRES", "grant.expires", clock),
    ),
    name="token",
    empty="there are no tokens",
)

CELLS = View(
    "",
    (
        Column("CALLS ITSELF", "name", wide=True),
        Column("OK", "ok"),
        Column("NODES", "nodes"),
        Column("PRODUCTION", "phases.production"),
        Column("AILING", "ailing"),
        Column("WAITING", "waiting"),
        Column("OPERATING", "operating"),
        Column("INCIDENTS", "incidents", count),
        Column("BRAKE", "brake"),
        Column("PAUSED", "paused"),
        Column("WHY", "why"),
        Column("CONTROLLER", "controller", wide=True),
    ),
    name="cell",
    empty="no cell answered",
)

CONTEXTS = View(
    "",
    (
        Column("CURRENT", "current"),
        Column("CONTEXT", "name"),
        Column("SERVER", "server"),
        Column("TOKEN FILE", "token"),
    ),
    name="name",
    empty="no context is known; add one with `hostler context add`",
)

ASSETS = View(
    routes.ASSETS,
    (
        Column("ASSET", "id"),
        Column("KIND", "kind"),
        Column("STATE", "state"),
        Column("SITE", "position.site"),
        Column("RACK", "position.rack"),
        Column("U", "position.u"),
        Column("DOMAINS", "domains"),
        Column("SERIAL", "look.serial"),
        Column("HEALTH", "look.health"),
        Column("LOOKED AT", "look.at", clock),
        Column("NOT READ", "look.why"),
        Column("SUPPLIES", "look.supplies", worded, wide=True),
        Column("LEAKS", "look.leaks", worded, wide=True),
        Column("FIRMWARE", "look.firmware", worded, wide=True),
    ),
    empty="no asset is known",
    events=("asset_",),
)

NOTIFICATION_ROUTES = View(
    routes.NOTIFICATIONS_ROUTES,
    (
        Column("ROUTE", "name"),
        Column("KIND", "kind"),
        Column("TOLD OF", "told"),
        Column("QUEUED", "queued"),
        Column("OLDEST", "oldest", age),
        Column("DELIVERED", "delivered"),
        Column("DEAD", "dead"),
        Column("LAST", "last", age),
    ),
    name="name",
    empty="no routes; add a section `routes` to the configuration",
)

AUDIT = View(
    routes.AUDIT,
    (
        Column("AT", "at", clock),
        Column("PERSON", "person"),
        Column("VERB", "verb"),
        Column("TARGET", "target"),
        Column("OUTCOME", "outcome"),
        Column("TIMES", "count"),
        Column("FROM", "address"),
        Column("ROLE", "role", wide=True),
        Column("TOKEN", "token", wide=True),
        Column("STATUS", "status", wide=True),
        Column("METHOD", "method", wide=True),
        Column("ROUTE", "route", wide=True),
        Column("LAST", "last", clock, wide=True),
        Column("REQUEST", "request", wide=True),
        Column("INTENT", "intent", wide=True),
        Column("CONTROLLER", "controller", wide=True),
        Column("CHAIN", "chain", wide=True),
        Column("NUMBER", "number", wide=True),
        Column("DIGEST", "digest", wide=True),
    ),
    name="number",
    empty="nobody has asked for anything",
)
