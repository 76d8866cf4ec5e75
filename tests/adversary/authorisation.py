"""Declares by hand who may do what over HTTP: identities, routes, verbs, and the answer to each.

Two customers share a cell: everything of one is called "lynx", everything of the other "orca". What stands under whose
word nobody else may read; what reaches over both is only for who sees the whole cell.
"""

from typing import Any

from msgspec import Struct

from hostler.server.routes.console_files import PAGES
from tests.contract.api_world import POLICY

LYNX, ORCA = "lynx", "orca"

WHOLE = frozenset({LYNX, ORCA})
ONLY_LYNX = frozenset({LYNX})
ONLY_ORCA = frozenset({ORCA})


class Who(Struct, frozen=True):
    """An identity: what it may do, whose things it reaches, and the fields of its token (None: see `tokens`)."""

    may: frozenset[str]
    reach: frozenset[str]
    grant: dict[str, str] | None = None


READER = frozenset({"see"})
TENANT = READER | {"disturb", "withdraw", "answer"}
TECHNICIAN = READER | {"withdraw", "work"}
OPERATOR = READER | TECHNICIAN | {"disturb", "operate"}
ALL_OF_IT = frozenset({"see cell"})
NOTHING: frozenset[str] = frozenset()

STRANGERS = {name: Who(NOTHING, NOTHING) for name in ("stranger", "wrong secret", "revoked token", "expired token")}
"""Identities that are nobody: each is answered 401 wherever anything is asked."""

IDENTITIES: dict[str, Who] = {
    **STRANGERS,
    "operator": Who(OPERATOR | ALL_OF_IT | {"enrol", "configure"}, WHOLE, {"role": "operator"}),
    "operator of a pool": Who(OPERATOR, ONLY_LYNX, {"role": "operator", "pool": "lynx-pool"}),
    "operator of a site": Who(OPERATOR, ONLY_ORCA, {"role": "operator", "site": "orca-site"}),
    "technician": Who(TECHNICIAN | ALL_OF_IT, WHOLE, {"role": "technician"}),
    "technician of a pool": Who(TECHNICIAN, ONLY_ORCA, {"role": "technician", "pool": "orca-pool"}),
    "viewer": Who(READER | ALL_OF_IT, WHOLE, {"role": "viewer"}),
    "viewer of a site": Who(READER, ONLY_LYNX, {"role": "viewer", "site": "lynx-site"}),
    "tenant": Who(TENANT, ONLY_LYNX, {"role": "tenant", "tenant": "lynx-co"}),
    "another tenant": Who(TENANT, ONLY_ORCA, {"role": "tenant", "tenant": "orca-co"}),
    "tenant without nodes": Who(TENANT, NOTHING, {"role": "tenant", "tenant": "nobody-co"}),
    "tenant of another's site": Who(TENANT, NOTHING, {"role": "tenant", "tenant": "lynx-co", "site": "orca-site"}),
    "tenant of another's pool": Who(TENANT, NOTHING, {"role": "tenant", "tenant": "lynx-co", "pool": "orca-pool"}),
    "agent": Who(frozenset({"report"}), ONLY_LYNX, {"role": "agent", "node": "lynx-0"}),
    "another agent": Who(frozenset({"report"}), ONLY_ORCA, {"role": "agent", "node": "orca-0"}),
    "agent of no node": Who(frozenset({"report"}), NOTHING, {"role": "agent", "node": "gone-0"}),
}


class Route(Struct, frozen=True):
    """A method and a path of the route table, what it asks for, and how it is tried.

    `asks` is a permission, or "nothing". `of` is the kind of object that it names; one that is out of reach is answered
    `beyond`, and of one that several share a part is shown (`partly`). `body` and `query` are sent, {node} being that
    object. `tells`: what the caller reaches is in the answer by name.
    """

    asks: str
    of: str = ""
    beyond: int = 404
    body: Any = None
    query: str = ""
    tells: bool = False
    partly: bool = False


ACTS = "modes: {{'*': act}}, budget: {{count: 8, percent: 100}}"
POOL = f"{{{{sku: h100, target: 8, tenant: {{0}}-co, cluster: {{0}}-k8s, {ACTS}}}}}"
FLEET = f"""
skus:
  h100: {{gpus: 2}}
pools:
  lynx-pool: {POOL.format(LYNX)}
  orca-pool: {POOL.format(ORCA)}
"""
DOCUMENTS = {"policy.yaml": POLICY, "fleet.yaml": FLEET}
BECAUSE = {"reason": "a test of who may"}
NOT_YOURS = 403
EXPECTED = {"serial": "NEW-9", "macs": ["52:54:00:99:00:09"], "sku": "h100"}
SPEC = {"id": "new-0", "sku": "h100", "serial": "SN-new-0", "hostname": "new-0"}

ROUTES: dict[str, Route] = {
    # what everybody may ask: no word about the fleet is in it
    "GET /": Route("nothing"),
    "GET /console/{name}": Route("nothing"),
    **{f"GET /{page}": Route("nothing") for page in PAGES},
    **{f"GET /{page}/{{name}}": Route("nothing") for page in PAGES},
    "GET /healthz": Route("nothing"),
    "GET /readyz": Route("nothing"),
    "GET /schema": Route("nothing"),
    "GET /schema/asyncapi.json": Route("nothing"),
    "GET /schema/openapi.json": Route("nothing"),
    "GET /schema/{path}": Route("nothing"),
    "GET /sign-in/ways": Route("nothing"),
    "GET /sign-in": Route("nothing"),
    "GET /sign-in/callback": Route("nothing"),
    "POST /sign-in/out": Route("nothing", body={}),
    # lists: each shows what the caller reaches, and nothing else. `tells`: it has rows of both customers
    "GET /v1/nodes": Route("see", tells=True),
    "GET /v1/map": Route("see", tells=True),
    "GET /v1/agents": Route("see", tells=True),
    "GET /v1/abilities": Route("see", tells=True),
    "GET /v1/conditions": Route("see", tells=True),
    "GET /v1/plans": Route("see", tells=True),
    "GET /v1/operations": Route("see", tells=True),
    "GET /v1/waiting": Route("see", tells=True),
    "GET /v1/shadows": Route("see", tells=True),
    "GET /v1/trends": Route("see", tells=True),
    "GET /v1/parts": Route("see", tells=True),
    "GET /v1/pools": Route("see", tells=True),
    "GET /v1/tickets": Route("see", tells=True),
    "GET /v1/holds": Route("see", tells=True),
    "GET /v1/links": Route("see", tells=True),
    "GET /v1/maintenance": Route("see", tells=True),
    "GET /v1/statement": Route("see", tells=True),
    "GET /v1/jobs": Route("see", tells=True),
    "GET /v1/incidents": Route("see", tells=True),
    "GET /v1/domains": Route("see", tells=True),
    "GET /v1/approvals": Route("see", tells=True),
    "GET /v1/status": Route("see", tells=True),
    "GET /v1/events": Route("see", tells=True),
    "GET /v1/records": Route("see", query="?limit=1000", tells=True),
    "GET /v1/me": Route("see"),
    "GET /v1/lifecycle": Route("see"),
    "GET /v1/verbs": Route("see"),
    # one thing: unknown to whom it is not for
    "GET /v1/nodes/{node_id}": Route("see", of="node", tells=True),
    "GET /v1/nodes/{node_id}/conditions": Route("see", of="node"),
    "GET /v1/drills/{node_id}": Route("see", of="node"),
    "GET /v1/nodes/{node_id}/firmware": Route("see", of="node"),
    "GET /v1/nodes/{node_id}/history": Route("see", of="node", tells=True),
    "GET /v1/nodes/{node_id}/explain": Route("see", of="node", tells=True),
    "GET /v1/nodes/{node_id}/lanes": Route("see", of="node", tells=True),
    "GET /v1/nodes/{node_id}/observations": Route("see", of="node", tells=True),
    "GET /v1/nodes/{node_id}/trends": Route("see", of="node", tells=True),
    "GET /v1/nodes/{node_id}/series": Route("see", of="node", tells=True),
    "GET /v1/parts/{serial}": Route("see", of="part", tells=True),
    "GET /v1/nodes/{node_id}/link": Route("see", of="node", query="?port=mlx5_0", tells=True),
    "GET /v1/pools/{name}": Route("see", of="pool", tells=True),
    "GET /v1/incidents/{incident_id}": Route("see", of="incident", tells=True, partly=True),
    "GET /v1/domains/{name}": Route("see", of="rack", tells=True, partly=True),
    "GET /v1/intents/{intent}": Route("see", of="intent"),
    "GET /v1/approvals/{approval}": Route("see", of="approval", tells=True),
    # the whole cell: never for who is narrowed
    "GET /v1/assets": Route("see cell"),
    "GET /v1/drills": Route("see cell"),
    "GET /v1/config": Route("see cell", tells=True),
    "GET /v1/nodes/{node_id}/cloud-init": Route("configure", of="node", tells=True),
    "GET /v1/nodes/{node_id}/evidence": Route("see cell", of="node"),
    "GET /v1/nodes/{node_id}/checklist": Route("work", of="node"),
    "GET /v1/nodes/{node_id}/checklist/files/{digest}": Route("work", of="node"),
    "GET /v1/nodes/{node_id}/bundles": Route("see cell", of="node"),
    "GET /v1/nodes/{node_id}/bundles/{digest}": Route("see cell", of="node"),
    "GET /v1/nodes/{node_id}/certificates": Route("see cell", of="node"),
    "GET /v1/nodes/{node_id}/certificates/{digest}": Route("see cell", of="node"),
    "GET /v1/nodes/{node_id}/sku-draft": Route("see cell", of="node"),
    "GET /v1/nodes/{node_id}/sku-differences": Route("see cell", of="node"),
    "GET /v1/backtests": Route("see cell"),
    "GET /v1/backtests/{backtest}": Route("see cell", of="backtest"),
    "GET /v1/goldens": Route("see cell"),
    "GET /v1/goldens/{golden_id}": Route("see cell", of="golden"),
    "GET /v1/rma-cases": Route("see cell"),
    "GET /v1/rma-cases/{case_id}": Route("see cell", of="rma"),
    "GET /v1/stock": Route("see cell"),
    "GET /v1/restore": Route("see cell"),
    "GET /v1/restore/nodes": Route("see cell"),
    "GET /v1/bmc/certificates": Route("see cell"),
    "GET /v1/bmc/credentials": Route("see cell"),
    "GET /v1/machine-work": Route("see cell"),
    "GET /v1/providers": Route("see cell"),
    "GET /v1/fabrics": Route("see cell"),
    "GET /v1/fabrics/{name}": Route("see cell", of="fabric"),
    "GET /v1/fabrics/{name}/versions": Route("see cell", of="fabric"),
    "GET /v1/fabrics/{name}/diff": Route("see cell", of="fabric", query="?old=current&new=current"),
    "GET /v1/fabrics/{name}/findings": Route("see cell", of="fabric", tells=True),
    "GET /v1/fabrics/{name}/history": Route("see cell", of="fabric", tells=True),
    "GET /v1/fabrics/{name}/links": Route("see cell", of="fabric", tells=True),
    "GET /v1/fabrics/{name}/faults": Route("see cell", of="fabric"),
    "GET /v1/fabrics/{name}/counters": Route("see cell", of="fabric"),
    "GET /v1/fabrics/{name}/manual-test/files/{digest}": Route("see cell", of="fabric"),
    "GET /v1/fabrics/{name}/matrix": Route("see cell", of="fabric", tells=True),
    "GET /v1/fabrics/{name}/finding": Route("see cell", of="fabric", query="?key=none"),
    "GET /v1/fabrics/{name}/link": Route("see cell", of="fabric", query="?port=leaf-1:1", tells=False),
    "GET /v1/trends/shifts": Route("see cell"),
    "GET /v1/trends/lemons": Route("see cell"),
    "GET /v1/trends/scorecard": Route("see cell"),
    "GET /v1/rollouts": Route("see cell"),
    "GET /v1/rollouts/{rollout}": Route("see cell", of="rollout"),
    "GET /v1/notifications/routes": Route("see cell"),
    "GET /v1/notifications/deliveries": Route("see cell"),
    "GET /v1/audit": Route("configure"),
    "GET /v1/flow": Route("see cell"),
    "GET /v1/racks": Route("see cell"),
    "GET /v1/racks/{rack}": Route("see cell", of="rack"),
    "GET /v1/bring-up": Route("see cell"),
    "GET /v1/bring-up/stages": Route("see cell"),
    "GET /metrics": Route("see cell", tells=True),
    "GET /metrics/nodes": Route("see cell", tells=True),
    # acts
    "POST /v1/nodes": Route("enrol", body={"nodes": [SPEC], **BECAUSE}),
    "POST /v1/adopt": Route("enrol", body={"nodes": [SPEC], **BECAUSE}),
    "POST /v1/assets": Route("enrol", body={"assets": [{"id": "new-1", "kind": "rack"}], **BECAUSE}),
    "POST /v1/admission/plan": Route("enrol", body={"nodes": [EXPECTED]}),
    "POST /v1/admission": Route("enrol", body={"nodes": [EXPECTED], "digest": "0" * 64, **BECAUSE}),
    "POST /v1/fabrics": Route("configure", body={"fabric": {"name": "ib1", "design": "x"}, **BECAUSE}),
    "POST /v1/fabrics/{name}/plan": Route("configure", of="fabric", beyond=403, body={"name": "ib1", "design": "x"}),
    "POST /v1/fabrics/{name}/recabling": Route(
        "configure",
        of="fabric",
        beyond=403,
        body={
            "fabric": {"name": "ib1", "design": "x"},
            "starts": "2026-01-31T22:00:00+00:00",
            "ends": "2026-01-31T23:00:00+00:00",
            **BECAUSE,
        },
    ),
    "POST /v1/fabrics/{name}/rollback": Route(
        "configure", of="fabric", beyond=403, body={"version": "current", **BECAUSE}
    ),
    "POST /v1/fabrics/{name}/pairs": Route(
        "work", of="fabric", beyond=403, body={"results": [{"a": "x:1", "z": "y:1", "gbps": 1.0}]}
    ),
    "POST /v1/fabrics/{name}/manual-test": Route(
        "work", of="fabric", beyond=NOT_YOURS, body={"results": "a,1", **BECAUSE}
    ),
    "POST /v1/fabrics/{name}/manual-test/files": Route(
        "work", of="fabric", beyond=NOT_YOURS, body={"name": "a.txt", "content": "YQ==", **BECAUSE}
    ),
    "POST /v1/tickets/{ticket}/files": Route(
        "work", of="ticket", beyond=NOT_YOURS, body={"name": "a.txt", "content": "YQ==", **BECAUSE}
    ),
    "GET /v1/tickets/{ticket}/files/{digest}": Route("work", of="ticket"),
    "GET /v1/tickets/{ticket}/people": Route("work", of="ticket"),
    "POST /v1/nodes/{node_id}/checklist/files": Route(
        "work", of="node", beyond=NOT_YOURS, body={"name": "a.txt", "content": "YQ==", "item": 1, **BECAUSE}
    ),
    "POST /v1/config": Route("configure", body={"documents": DOCUMENTS, **BECAUSE}),
    "POST /v1/backtests": Route("configure", body={"documents": DOCUMENTS, **BECAUSE}),
    "POST /v1/backtests/{backtest}/cancel": Route("configure", of="backtest", beyond=NOT_YOURS, body=BECAUSE),
    "POST /v1/notifications/routes/{route}/test": Route("configure", of="route", beyond=NOT_YOURS, body=BECAUSE),
    "POST /v1/notifications/deliveries/{number}/retry": Route("configure", of="letter", beyond=NOT_YOURS, body=BECAUSE),
    "POST /v1/rollouts/{rollout}/stop": Route("operate", of="rollout", beyond=NOT_YOURS, body=BECAUSE),
    "POST /v1/approvals/{approval}/{answer}": Route("operate", of="approval", beyond=NOT_YOURS, body=BECAUSE),
    "POST /v1/nodes/{node_id}/{verb}": Route("disturb", of="node", body=BECAUSE),
    "POST /v1/racks/{rack}/{verb}": Route("disturb", of="rack", beyond=NOT_YOURS, body=BECAUSE),
    "POST /v1/intents": Route(
        "disturb", of="node", beyond=NOT_YOURS, body={"act": {"verb": "cordon"}, "target": "{node}", **BECAUSE}
    ),
    # agents: each for its own node
    "GET /v1/agent/operations": Route("report", of="node", beyond=NOT_YOURS, query="?node={node}"),
    "GET /v1/agent/joining": Route("report", of="node", beyond=NOT_YOURS, query="?node={node}"),
    "POST /v1/agent/meetings": Route(
        "report",
        of="node",
        beyond=NOT_YOURS,
        body={"node": "{node}", "operation": "o1", "via": "mlx5_0", "address": "10.0.0.1", "port": 4242},
    ),
    "POST /v1/agent/heartbeat": Route("report", of="node", beyond=NOT_YOURS, body={"node": "{node}", "boot_id": "b"}),
    "POST /v1/agent/readings": Route(
        "report",
        of="node",
        beyond=NOT_YOURS,
        body={"node": "{node}", "boot_id": "b", "window": 1, "age_s": 0.0, "readings": []},
    ),
    "POST /v1/agent/outcomes": Route("report", of="node", beyond=NOT_YOURS, body={"node": "{node}", "outcomes": []}),
    "POST /v1/agent/observations": Route(
        "report",
        of="node",
        beyond=NOT_YOURS,
        body={"node": "{node}", "spool": "s9", "boot_id": "b", "observations": []},
    ),
}
"""Every route there is. What is missing here, or too much, fails the test."""

VERBS: dict[str, str] = {
    **dict.fromkeys(
        (
            "consent",
            "cordon",
            "drain",
            "power-cycle",
            "reboot",
            "release-node",
            "request-replacement",
            "reset-gpu",
            "return-for-maintenance",
            "uncordon",
            "update-firmware",
            "withdraw-request",
        ),
        "disturb",
    ),
    **dict.fromkeys(
        (
            "add-item-file",
            "certify",
            "claim-ticket",
            "close-ticket",
            "end-work",
            "hand-over-ticket",
            "locate",
            "power-off",
            "fail-inspection",
            "rma-return",
            "start-work",
            "tick-item",
            "unlocate",
        ),
        "work",
    ),
    **dict.fromkeys(("certify", "close-ticket", "end-work", "power-off", "rma-return", "start-work"), "work"),
    "call-off": "withdraw",
    "answer-maintenance": "answer",
    "validate-fabric": "work",
    "tick-manual-test": "work",
    "tick-stop": "work",
    "sign-manual-test": "work",
    **dict.fromkeys(("advance-rma", "edit-rma", "count-stock"), "work"),
    **dict.fromkeys(("open-rma", "close-rma", "retire-golden"), "operate"),
    "schedule-manual-test": "configure",
    "move-recabling": "configure",
    "walk-findings": "work",
    "cancel-recabling": "configure",
    "remove-fabric": "configure",
    **dict.fromkeys(
        (
            "accept-remediator",
            "approve",
            "approve-request",
            "cancel-maintenance",
            "clear-condition",
            "close-incident",
            "confirm-clock",
            "debug",
            "deny-request",
            "hold",
            "mode",
            "onboard",
            "pause",
            "rebind",
            "clean",
            "deploy",
            "inspect",
            "renew-certificate",
            "renew-login",
            "reject",
            "release",
            "release-brake",
            "release-restore",
            "report-remediators",
            "resume",
            "retire",
            "rma-send",
            "schedule-maintenance",
            "stop-rollout",
            "treat-individually",
            "triage",
            "vouch",
            "withdraw-remediator",
            "zap-again",
        ),
        "operate",
    ),
}
"""Verbs of POST /v1/intents and what each asks for. Those that carry documents have routes of their own: 400."""

PARTLY = frozenset({"answer-maintenance"})
"""Verbs let through whatever they name: the handler refuses, always in the same words, what is out of reach."""

DOCUMENT_VERBS = (
    "register",
    "adopt",
    "register-assets",
    "activate",
    "register-fabric",
    "plan-recabling",
    "enter-manual-test",
    "add-manual-test-file",
    "add-ticket-file",
    "add-item-file",
)

TARGETS: dict[str, frozenset[str]] = {
    "lynx-0": ONLY_LYNX,
    "orca-0": ONLY_ORCA,
    "pool:lynx-pool": ONLY_LYNX,
    "pool:orca-pool": ONLY_ORCA,
    "rack:both-rack": WHOLE,
    "nodes": WHOLE,
    "fleet": WHOLE,
}
"""The target of a verb, and whom the caller needs to reach. "nodes" is one of each customer."""

LET_THROUGH = 0
"""The answer is the controller's: granted, waiting for a second person, or refused for what the fleet is like."""


def on_route(who: str, row: Route, whose: frozenset[str] | None) -> int:
    """Returns the answer to a request: 401, 403, 404, or LET_THROUGH. `whose` object it names, or None."""
    identity = IDENTITIES[who]
    if row.asks == "nothing":
        return LET_THROUGH
    if who in STRANGERS:
        return 401
    enough = whose is None or _reaches(identity, row, whose)
    if row.asks in identity.may:
        return LET_THROUGH if enough else row.beyond
    # an act on what the caller does not see is no more than unknown, whatever it may do elsewhere
    return 404 if row.beyond == 404 and row.body is not None and "see" in identity.may and not enough else 403


def _reaches(identity: Who, row: Route, whose: frozenset[str]) -> bool:
    """Whether the object is within reach. Of what both customers have a part in, a part is enough to be shown that."""
    return bool(whose & identity.reach) if row.partly else whose <= identity.reach


def on_verb(who: str, verb: str, target: str) -> int:
    """Returns the answer to POST /v1/intents."""
    if who in STRANGERS:
        return 401
    identity = IDENTITIES[who]
    if verb in DOCUMENT_VERBS and "see" in identity.may:
        return 400
    reaches = verb in PARTLY or TARGETS[target] <= identity.reach
    return LET_THROUGH if VERBS.get(verb) in identity.may and reaches else 403
