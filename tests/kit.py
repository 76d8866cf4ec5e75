"""A small world around one controller: fleets crowded around limits, scripted hands, and a journal in a list.

`Drive` drives a Controller as the runner does: step, commit, send. Its hands act on a plain model of machines
(power, boots, cordons, work), so a test may ask the machines, and not only the journal, what happened.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml
from msgspec.structs import replace

from hostler.controller.inputs import (
    AgentHeard,
    AgentSilent,
    Input,
    IntentAsked,
    NodeSeen,
    Observed,
    Replied,
    Tick,
    WorkSeen,
)
from hostler.controller.loop import Controller
from hostler.controller.step_output import Reply, Send, StepOutput
from hostler.core.diagnose.gate.readings import GPUS_SEEN, LOOK
from hostler.core.policy import documents
from hostler.core.report.sentences import sentence
from hostler.core.state import events as e
from hostler.core.state import pass_rules
from hostler.core.state.assets import Binding, Position
from hostler.core.state.cell_record import CellRecord
from hostler.core.state.configuration import Configuration
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.fleet import Fleet
from hostler.core.state.fold import evolve
from hostler.core.state.intent import Intent, act_of
from hostler.core.state.live_state import LiveState, Release
from hostler.core.state.model import (
    HELD,
    Assignment,
    Facts,
    Hold,
    HoldKind,
    Node,
    Observation,
    Operation,
    Outcome,
    Part,
    Phase,
)
from hostler.core.state.operations import (
    CordonUninvited,
    DeleteUninvited,
    IssueJoinToken,
    RunChecks,
    VerifyDeviceFirmware,
    VerifyFirmware,
)
from hostler.core.state.packed_strings import pairs
from hostler.core.state.scopes import NODES, Scope, text_hook
from hostler.core.state.snapshot import dump, state_of
from hostler.core.tables.operations import IDLE_CHECK
from hostler.ports import WorkloadView, workloads_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GPUS = 8
CLUSTER = "k1"
E = TypeVar("E")
VERDICTS = frozenset({"failed", "stale", "never_verified", "inconclusive"})
"""Scripted answers of a check that are not *passed*."""
POLICY = Path(documents.__file__).with_name("default_policy.yaml").read_text()
BAD_LINES = {
    "off_bus": "NVRM: Xid (PCI:0000:{gpu:02x}:00): 79, pid=1, name=python3, GPU has fallen off the bus.",
    "ecc": "NVRM: Xid (PCI:0000:{gpu:02x}:00): 95, pid=1, name=python3, Uncontained ECC error.",
}


def after(**length: float) -> datetime:
    return NOW + timedelta(**length)


def pool_document(**fields: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "sku": "h100",
        "target": 4,
        "cluster": CLUSTER,
        "tenant": "acme",
        "owner": "pat@acme",
        "modes": {"*": "act"},
        "budget": {"count": 1, "percent": 100},
    }
    return {**base, **fields}


@lru_cache(maxsize=256)
def _parsed(pools: str, policy: str) -> Configuration:
    return documents.parse({"policy.yaml": policy, "pools.yaml": pools})


@cache
def _policy_tree() -> dict[str, Any]:
    tree: dict[str, Any] = yaml.safe_load(POLICY)
    return tree


def configuration(
    pools: dict[str, dict[str, Any]] | None = None,
    policy: Callable[[dict[str, Any]], None] | None = None,
    firmware: dict[str, str] | None = None,
    gpus: int = GPUS,
    **sku: Any,
) -> Configuration:
    """The default policy with these pools; `policy` may change its tree first, `sku` says more of the nodes' model."""
    skus = {"h100": {"gpus": gpus, "firmware": firmware or {}, **sku}}
    tree = {"skus": skus, "pools": pools if pools is not None else {"train": pool_document()}}
    text = POLICY
    if policy is not None:
        changed = deepcopy(_policy_tree())
        policy(changed["policy"])
        text = json.dumps(changed)
    return _parsed(json.dumps(tree), text)


def gpu_part(node_id: str, gpu: int) -> Part:
    return Part(f"{node_id}-G{gpu}", "gpu", "H100", f"gpu{gpu}")


def a_node(node_id: str, pool: str = "train", **fields: Any) -> Node:
    """A healthy node in production, in the pool ("" = a spare), its eight GPUs known by slot, serial and address."""
    serials = [f"{node_id}-G{gpu}" for gpu in range(GPUS)]
    base: dict[str, Any] = {
        "id": node_id,
        "position": Position("c1", rack="r1"),
        "sku": "h100",
        "phase": Phase.production,
        "phase_since": NOW,
        "registered_at": NOW,
        "bindings": (
            Binding("serial", f"S-{node_id}", NOW),
            Binding("bmc", f"https://bmc/{node_id}", NOW),
        ),
        "assignment": Assignment(pool, "acme", CLUSTER, NOW) if pool else None,
        "boot_id": f"{node_id}-b1",
        "boots": (f"{node_id}-b1",),
        "slots": tuple((f"gpu{gpu}", serials[gpu]) for gpu in range(GPUS)),
        "addresses": tuple((f"pci:0000:{gpu:02x}:00", serials[gpu]) for gpu in range(GPUS)),
        "inventory_at": NOW,
        "inventory_boot": fields.get("boot_id", f"{node_id}-b1"),
        "inventory_covers": ("gpu",),
    }
    given = {**base, **fields}
    given.setdefault("most_seen", (("gpu", len(given["slots"])),) if given["slots"] else ())
    domains = tuple(map(Scope.of, given.get("domains", ())))
    return Node(**given | {name: pairs(given[name]) for name in ("slots", "addresses")} | {"domains": domains})


def seen_all(operation: Operation) -> Facts:
    """Answers as a gate that saw all that it was to see, and as checks that went by their pass rules."""
    if not isinstance(operation.act, RunChecks):
        return {}
    ruled = pass_rules.named(operation.act.profile, operation.act.rules)
    if (expected := operation.act.expects) is None:
        return ruled
    names = (*(f"gpu {gpu.name}" for gpu in expected.known), *(f"gone {fault.name}" for fault in expected.faulted))
    return {**ruled, GPUS_SEEN: expected.gpus, **{f"{LOOK}{name}": "passed: as scripted" for name in names}}


def seen(node: Node) -> Iterable[e.Event]:
    """Makes a node known as it is, with its parts where it has any."""
    yield e.NodeRegistered(node)
    if node.slots and node.inventory_at is not None:
        parts = tuple(Part(serial, "gpu", "H100", slot) for slot, serial in node.slots)
        addresses, covers = tuple(node.addresses), node.inventory_covers
        told = e.InventorySeen(node.id, node.inventory_at, parts, (), addresses, node.inventory_boot, covers)
        yield told


def a_hold(scope: str, kind: HoldKind = HoldKind.operator, owner: str = "ann", **fields: Any) -> Hold:
    return Hold(f"h-{kind.value}-{scope}", Scope.of(scope), kind, owner, "because", NOW, **fields)


def a_workload(name: str, gpus: Iterable[int] | None = None, kind: str = "uninterruptible") -> Workload:
    parts = None if gpus is None else tuple(f"gpu{gpu}" for gpu in gpus)
    return Workload(name, "acme", WorkClass(kind), parts)


def fold(records: Iterable[e.Record], fleet: Fleet | None = None) -> Fleet:
    """Fold the records, unless a fleet is given, into a cell that has today's format: nothing waits for a raise."""
    if fleet is None:
        fleet = Fleet()
        fleet.singles.base["cell"] = CellRecord(format=Release().reads)
    for record in records:
        evolve(fleet, record)
    fleet.merge()
    return fleet


def digest(fleet: Fleet) -> bytes:
    """The committed fleet as bytes; tables sorted, for the order of a table's rows means nothing."""
    state = state_of(fleet)
    rows = {
        "nodes": sorted(state.nodes, key=lambda n: n.id),
        "fitted": dict(sorted(state.fitted.items())),
        "loose": dict(sorted(state.loose.items())),
        "holds": sorted(state.holds, key=lambda h: h.id),
        "windows": sorted(state.windows, key=lambda w: w.id),
        "tickets": sorted(state.tickets, key=lambda t: t.id),
        "assets": sorted(state.assets, key=lambda a: a.id),
    }
    return dump(replace(state, **rows))


def intent_of(*words: Any, **fields: Any) -> Intent:
    """The intent of a request in words: id, verb, target, person, reason, moment and arguments as text.

    `nodes` among the arguments lists nodes with commas between.
    """
    said = dict(zip(("id", "verb", "target", "person", "reason", "at", "args"), words, strict=False)) | fields
    args = dict(said.pop("args", {}))
    listed = args.pop(NODES, "") if said["target"] == NODES else ""
    return Intent(act=act_of(said.pop("verb"), args), nodes=tuple(filter(None, listed.split(","))), **said)


class LostCommitError(Exception):
    """The journal did not take the batch."""


class Drive:
    """One controller, its journal, its machines. Hands do as asked unless `script` says otherwise.

    Scripted answers: done, failed, refused, busy, held (failed: somebody holds it), "unknown" (it worked, unseen),
    "vanished" (nothing happened, nobody knows), "mute" (it works at once and never answers), "late" (it works and
    answers at `land`).
    """

    def __init__(self, config: Configuration | None = None, nodes: Iterable[Node] = (), *, quiet: bool = False) -> None:
        self.now = NOW
        self.journal: list[e.Record] = []
        self.power: dict[str, bool] = {}
        self.boots: Counter[str] = Counter()
        self.cordoned: set[str] = set()
        self.work: dict[str, tuple[Workload, ...]] = {}
        self.pending: list[Send] = []
        self.late: list[Send] = []
        self.silent: set[str] = set()
        self.profiles: dict[str, tuple[str, ...]] = {}
        self.blind: set[str] = set()
        self.sent: list[Send] = []
        self.performed: Counter[tuple[str, int]] = Counter()
        self.effects: set[str] = set()
        self.evicted: list[str] = []
        self.scripts: dict[tuple[str, str], list[str]] = {}
        self.replies: list[Reply] = []
        self.commits = 0
        self.failing_commit = 0
        self.checks: list[Callable[[Drive, StepOutput], None]] = []
        self._token = 0
        self._sequence = 0
        seed: list[e.Event] = [e.ConfigActivated(config or configuration(), {}, "ann")]
        for event in (*seed, *(event for node in nodes for event in seen(node))):
            self.journal.append(e.Record(len(self.journal) + 1, NOW, 1, "seed", event))
        for node in nodes:
            self.power[node.id] = True
            self.boots[node.id] = 1
            self.work[node.id] = ()
        self.begin(1, quiet=quiet)

    @property
    def fleet(self) -> Fleet:
        return self.controller.fleet

    def begin(self, epoch: int, *, quiet: bool = False) -> None:
        """A controller with nothing but the journal; unless `quiet`, everybody is heard at once."""
        self.controller = Controller(self._folded(), LiveState(), {}, epoch)
        self._complete(self.controller.resume(self.now, "test"))
        if quiet:
            return
        heard = [AgentHeard(n, self.boot_of(n), self.profiles.get(n)) for n in self.fleet.nodes if self.power.get(n)]
        readings = [NodeSeen(n, "on" if up else "off", ready=up) for n, up in self.power.items()]
        self.step(self.view(), *heard, *readings)

    def _folded(self) -> Fleet:
        return fold(self.journal)

    def restart(self, gap_s: float = 1.0, *, out_happens: bool = False) -> None:
        """The controller is gone, and after a while another begins with the journal.

        What was about to be sent is lost, or has happened and nobody was told.
        """
        sends, self.pending = self.pending, []
        for send in sends:
            if send.how == "perform" and out_happens:
                self.performed[send.operation.id, send.operation.attempt] += 1
                self._happen(send.operation)
        self.now += timedelta(seconds=gap_s)
        self.begin(self.controller.epoch + 1)

    def view(self) -> WorkSeen:
        views = tuple(WorkloadView(n, work) for n, work in sorted(self.work.items()))
        return WorkSeen(views, whole=True, cluster=CLUSTER)

    def boot_of(self, node_id: str) -> str:
        return f"{node_id}-b{self.boots[node_id]}"

    # --- the loop

    def step(self, *inputs: Input) -> StepOutput:
        ready = self.controller.step(inputs, self.now)
        self._complete(ready)
        return ready

    def _complete(self, ready: StepOutput) -> None:
        self.commits += 1
        if self.commits == self.failing_commit:
            self.controller.lost()
            raise LostCommitError
        self.journal.extend(ready.batch.records)
        self.controller.committed()
        self.pending.extend(ready.sends)
        self.sent.extend(ready.sends)
        self.replies.extend(ready.replies)
        for check in self.checks:
            check(self, ready)

    def run(self, sends: int = 1_000) -> None:
        """Let the hands work until nothing is out; each send takes a second."""
        while self.pending and sends:
            sends -= 1
            self.now += timedelta(seconds=1)
            self.serve(self.pending.pop(0))
        assert not self.pending, "the hands never came to rest"

    def run_some(self, sends: int) -> None:
        """Let the hands take so many sends, and no more."""
        for _ in range(sends):
            if self.pending:
                self.now += timedelta(seconds=1)
                self.serve(self.pending.pop(0))

    def wait(self, **length: float) -> None:
        """Let time pass: the clock wakes the controller whenever it asked for it, the hands work in between."""
        until = self.now + timedelta(**length)
        for _ in range(20_000):
            self.run()
            wake = self.controller.agenda.next()
            if wake is None or wake > until:
                break
            self.now = max(self.now, wake)
            self.step(Tick())
        else:
            raise AssertionError("time does not pass: the controller is woken again and again")
        self.now = max(self.now, until)
        self.step(Tick())
        self.run()

    def silence(self, node_id: str) -> None:
        """The node's agent is not heard any more, until the node restarts."""
        self.silent.add(node_id)
        self.step(AgentSilent(node_id, self.now - timedelta(seconds=40)))

    # --- people, agents, schedulers

    def ask(self, verb: str, target: str, person: str = "ann", **args: str) -> Reply:
        self._token += 1
        intent = intent_of(f"i{self._token}", verb, target, person, "because", self.now, args)
        ready = self.step(IntentAsked(self._token, intent))
        return next(r for r in ready.replies if r.token == self._token)

    def ask_two(self, verb: str, target: str, **args: str) -> Reply:
        """Ann asks; where it takes a second person, bob approves. The answer is the last one's."""
        reply = self.ask(verb, target, **args)
        approval = reply.detail.get("approval")
        return self.ask("approve-request", approval, person="bob") if approval else reply

    def activate(self, config: Configuration) -> None:
        self._token += 1
        intent = intent_of(f"i{self._token}", "activate", "fleet", "ann", "because", self.now)
        self.step(IntentAsked(self._token, intent, config))

    def observe(self, node_id: str, kind: str, text: str = "", **fields: Any) -> None:
        self._sequence += 1
        boot = self.fleet.nodes[node_id].boot_id
        seen = Observation(node_id, kind, "agent", f"s{self._sequence}", 1, boot, text=text, facility=0)
        seen = replace(seen, received=self.now, **fields)
        self.step(Observed(0, node_id, (seen,)))

    def fault(self, node_id: str, what: str = "off_bus", gpu: int = 0) -> None:
        """A line of kernel log about one GPU."""
        self.observe(node_id, "kernel_log", BAD_LINES[what].format(gpu=gpu))

    def leak(self, node_id: str) -> None:
        self.observe(node_id, "sensors", source="bmc", facts={"leak_tray": "critical"})

    def see_work(self, node_id: str, *work: Workload) -> None:
        self.work[node_id] = work
        self.step(WorkSeen((WorkloadView(node_id, work),), cluster=CLUSTER))

    def sweep(self) -> int:
        """How many records a sweep over everything adds."""
        self.step(Tick())
        before = len(self.journal)
        self.controller.sweep(list(self.fleet.nodes))
        self.step()
        return len(self.journal) - before

    # --- the hands

    def script(self, kind: str, *answers: str, node: str = "") -> None:
        self.scripts.setdefault((kind, node), []).extend(answers)

    def _take_script(self, operation: Operation) -> str:
        for key in ((operation.kind, operation.node), (operation.kind, "")):
            if self.scripts.get(key):
                return self.scripts[key].pop(0)
        return "done"

    def serve(self, send: Send) -> None:
        operation = send.operation
        if send.how == "revoke":
            return
        if send.how == "observe":
            self._reply(operation, "done" if operation.id in self.effects else "not_done")
            return
        self.performed[operation.id, operation.attempt] += 1
        answer = self._take_script(operation)
        if answer == "late":
            self.late.append(send)
            return
        if answer in ("done", "unknown", "mute"):
            self._happen(operation)
        if answer == "mute":
            return
        self._reply(operation, "unknown" if answer == "vanished" else answer)

    def land(self) -> None:
        """Carries the late act out now, and tells it."""
        sends, self.late = self.late, []
        for send in sends:
            self._happen(send.operation)
            self._reply(send.operation, "done")

    def _reply(self, operation: Operation, result: str) -> None:
        facts: dict[str, str | int | float | bool | None] = {}
        if operation.kind in ("run_checks", IDLE_CHECK):
            facts = {"verdict": result if result in VERDICTS else "passed", **seen_all(operation)}
            result = "done" if result in VERDICTS else result
        if isinstance(operation.act, VerifyFirmware):
            facts = {name: versions[0] for name, versions in operation.act.wanted.items()}
        if isinstance(operation.act, VerifyDeviceFirmware) and result == "done":
            facts = {name: one.good[0] for name, one in operation.act.wanted.items()}
        if result == "held":
            facts, result = {HELD: "python3 (pid 4711)"}, "failed"
        outcome = Outcome(operation.id, operation.node, result, "as scripted", facts, attempt=operation.attempt)
        shown = self._shown_aside(operation) if result == "done" else ()
        self.step(*shown, Replied(outcome), *self._news(operation.node))

    def _shown_aside(self, operation: Operation) -> tuple[Input, ...]:
        """Shows what the cluster that the node has left shows once an operation there is done."""
        if not isinstance(operation.act, CordonUninvited | DeleteUninvited | IssueJoinToken):
            return ()
        view = WorkloadView(operation.node, (), cordoned=True, listed=operation.kind != "delete_uninvited")
        return (WorkSeen((view,), cluster=operation.act.cluster),)

    def _news(self, node_id: str) -> list[Input]:
        if not self.power.get(node_id):
            self.silent.discard(node_id)
            return [NodeSeen(node_id, "off")]
        if node_id in self.silent:
            return [NodeSeen(node_id, "on")]
        heard = AgentHeard(node_id, self.boot_of(node_id), self.profiles.get(node_id))
        return [NodeSeen(node_id, "on"), heard, *self._parts_of(node_id)]

    def _parts_of(self, node_id: str) -> list[Input]:
        """The inventory that an agent tells when it begins: what its node is known to consist of."""
        node = self.fleet.nodes.get(node_id)
        if node is None or node.inventory_boot == self.boot_of(node_id) or node_id in self.blind:
            return []
        parts = tuple(part for _, serial in node.slots if (part := self.fleet.parts.get(serial)) is not None)
        self._sequence += 1
        facts: dict[str, str | int | float | bool | None] = {"covers": "gpu"}
        seen = Observation(node_id, "inventory", "agent", f"s{self._sequence}", 1, self.boot_of(node_id), parts=parts)
        return [Observed(0, node_id, (replace(seen, received=self.now, facts=facts),))]

    def _happen(self, operation: Operation) -> None:
        self.effects.add(operation.id)
        node_id = operation.node
        match operation.kind:
            case "power_off":
                self.power[node_id] = False
            case "power_on" if not self.power.get(node_id):
                self.power[node_id] = True
                self.boots[node_id] += 1
            case "reboot":
                self.boots[node_id] += 1
            case "cordon":
                self.cordoned.add(node_id)
            case "uncordon":
                self.cordoned.discard(node_id)
            case "evict":
                gone = set(workloads_of(operation))
                self.evicted.extend(sorted(gone))
                self.work[node_id] = tuple(w for w in self.work.get(node_id, ()) if w.id not in gone)
            case "join_cluster":
                self.work.setdefault(node_id, ())
            case "leave_cluster":
                self.work.pop(node_id, None)
            case _:
                pass

    # --- reading

    def is_on(self, node_id: str) -> bool:
        """Whether the machine itself is on, whatever anybody believes."""
        return self.power[node_id]

    def node(self, node_id: str) -> Node:
        return self.fleet.nodes[node_id]

    def events(self, kind: type[E], node_id: str = "") -> list[E]:
        return [r.event for r in self.journal if isinstance(r.event, kind) and node_id in ("", *e.subjects_of(r.event))]

    def operations(self, node_id: str = "") -> list[str]:
        """The kinds of all operations that were recorded as started, in order."""
        return [event.operation.kind for event in self.events(e.OperationStarted, node_id)]

    def plans(self, node_id: str = "") -> list[str]:
        return [event.plan.name for event in self.events(e.PlanRecorded, node_id)]

    def transcript(self, node_id: str = "", since: int = 0) -> str:
        """Returns the transcript that an operator would read."""
        told = (r for r in self.journal[since:] if not node_id or node_id in e.subjects_of(r.event))
        kept = (r for r in told if not isinstance(r.event, e.PlanAdvanced))
        return "\n".join(f"{r.at:%d %H:%M:%S} {sentence(r.event)}" for r in kept)


class FirstFormatDrive(Drive):
    """A cell in which nobody has raised the format: features fall back to what every controller reads."""

    def _folded(self) -> Fleet:
        return fold(self.journal, Fleet())


def encoded(records: Iterable[e.Record]) -> bytes:
    return msgspec.json.encode(list(records), enc_hook=text_hook)
