"""Over any history of faults, requests, outcomes, silence and time: nothing raises, and safety holds from outside."""

import random
from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostler.controller.inputs import AgentHeard, AgentSilent, Tick
from hostler.controller.step_output import StepOutput
from hostler.core.state import events as e
from hostler.core.state.model import ActClass, HoldKind, Phase, Profile
from hostler.core.state.scopes import Scope
from hostler.core.state.verbs.every import VERBS
from tests.drawing import examples
from tests.kit import Drive, a_node, a_workload, configuration, digest, fold, gpu_part, pool_document

NODES = ("a", "b", "c", "d", "s", "t", "u", "n")
TARGETS = (*NODES, "fleet", "pool:train", "rack:r1", "rack:none", "nobody")
WORK = ("uninterruptible", "graceful", "interruptible", "infrastructure")
KINDS = (
    "cordon",
    "uncordon",
    "evict",
    "power_off",
    "power_on",
    "run_checks",
    "gpu_reset",
    "reboot",
    "collect_evidence",
    "join_cluster",
    "start_kubelet",
    "confirm_join",
    "stop_kubelet",
    "leave_cluster",
    "sanitise",
    "verify_firmware",
    "update_firmware",
)
ANSWERS = ("done", "failed", "refused", "unknown", "vanished", "mute", "late", "busy")
LENGTHS_S = (1, 31, 301, 3_600, 30_000, 90_000, 700_000)
ARGS: tuple[dict[str, str], ...] = (
    {},
    {"now": "true"},
    {"mode": "observe"},
    {"mode": "propose"},
    {"mode": "act"},
    {"hours": "1"},
    {"hours": "x"},
    {"shift_lead": "true"},
    {"serial": "S-a"},
    {"condition": "gpu.fallen_off_bus"},
    {"condition": "cooling.leak"},
    {"starts": "2026-01-02T00:00:00+00:00", "ends": "2026-01-02T04:00:00+00:00"},
)

nodes = st.sampled_from(NODES)
gpus = st.integers(0, 7)
work = st.builds(
    a_workload,
    st.sampled_from(("w1", "w2", "w3")),
    st.none() | st.lists(gpus, max_size=3),
    st.sampled_from(WORK),
)
actions = st.one_of(
    st.tuples(st.just("fault"), nodes, st.sampled_from(("off_bus", "ecc")), gpus),
    st.tuples(st.just("leak"), nodes),
    st.tuples(st.just("verdict"), nodes, st.sampled_from(("passed", "failed", "inconclusive"))),
    st.tuples(st.just("inventory"), nodes, st.integers(0, 8)),
    st.tuples(st.just("ask"), st.sampled_from(sorted(VERBS)), st.sampled_from(TARGETS), st.sampled_from(ARGS)),
    st.tuples(
        st.just("ask_about_what_is"), st.sampled_from(("release", "close-ticket", "approve", "reject", "resume"))
    ),
    st.tuples(st.just("script"), st.sampled_from(KINDS), st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=4)),
    st.tuples(st.just("serve"), st.integers(1, 12)),
    st.tuples(st.just("land")),
    st.tuples(st.just("wait"), st.sampled_from(LENGTHS_S)),
    st.tuples(st.just("jump"), st.sampled_from(LENGTHS_S)),
    st.tuples(st.just("silent"), nodes),
    st.tuples(st.just("heard"), nodes, st.booleans()),
    st.tuples(st.just("work"), nodes, st.lists(work, max_size=3, unique_by=lambda w: w.id)),
    st.tuples(st.just("restart"), st.sampled_from((1, 30_000)), st.booleans()),
    st.tuples(st.just("sweep")),
)


class Watch:
    """Judges the journal from outside, record by record, with a small memory of its own."""

    def __init__(self) -> None:
        self.plan: dict[str, str] = {}
        self.operation: dict[str, str] = {}
        self.aside: dict[str, str] = {}
        self.away: dict[str, set[str]] = {}
        self.holds: dict[str, tuple[str, HoldKind]] = {}
        self.paused: set[str] = set()
        self.brake = False

    def see(self, drive: Drive, ready: StepOutput) -> None:
        for record in ready.batch.records:
            self.note(drive, record)
        for operation, times in drive.performed.items():
            assert times == 1, f"{operation} was performed {times} times"

    def note(self, drive: Drive, record: e.Record) -> None:  # noqa: C901, PLR0912 - one flat table of cases
        match record.event:
            case e.PlanRecorded(plan=plan):
                assert plan.node not in self.plan, f"{plan.node} has two plans"
                self.plan[plan.node] = plan.id
                if plan.disruptive and plan.act_class in (ActClass.immediate, ActClass.pending):
                    self._may_disturb(plan.node, plan.pool)
            case e.PlanEnded(node=node):
                del self.plan[node]
            case e.OperationStarted(operation=operation):
                slot = self.aside if operation.aside else self.operation
                assert slot.get(operation.node, operation.id) == operation.id, "two operations at once"
                slot[operation.node] = operation.id
                if operation.kind in ("power_on", "update_firmware", "reboot"):
                    dark = [k for s, k in self.holds.values() if s == operation.node]
                    assert HoldKind.physical_work not in dark, "an open machine is touched"
                    assert HoldKind.power not in dark, "what must stay dark is powered"
            case e.OperationFinished(node=node, operation=done):
                del (self.aside if self.aside.get(node) == done else self.operation)[node]
            case e.HoldPlaced(hold=hold):
                self.holds[hold.id] = (hold.scope.text, hold.kind)
            case e.HoldReleased(hold=hold_id):
                self.holds.pop(hold_id, None)
            case e.PauseSet(scope=Scope(text=scope), paused=paused):
                (self.paused.add if paused else self.paused.discard)(scope)
            case e.BrakeLatched():
                self.brake = True
            case e.BrakeReleased():
                self.brake = False
            case e.WaitingChanged(waiting=waiting) if waiting is not None:
                assert waiting.blockers, f"{waiting.what} waits for nothing"
                assert all(b.text and b.kind and b.ends_when for b in waiting.blockers)
            case _:
                pass

    def _may_disturb(self, node: str, pool: str) -> None:
        scopes = {"fleet", node, "rack:r1", "cluster:k1" if pool else "", f"pool:{pool}"}
        assert not self.brake, "disturbed under the storm brake"
        assert not scopes & self.paused, "disturbed under a pause"
        held = [k for s, k in self.holds.values() if s in scopes]
        assert not {HoldKind.operator, HoldKind.physical_work, HoldKind.power, HoldKind.override} & set(held)


def world() -> Drive:
    pools = {
        "train": pool_document(target=4, budget={"count": 2, "percent": 100, "reserve": 1}),
        "bare": pool_document(target=1, profile="unmanaged", modes={}),
    }
    fleet = [
        *(a_node(name, domains=("rack:r1",)) for name in "abcd"),
        a_node("s", pool=""),
        a_node("t", pool="", phase=Phase.triage),
        a_node("u", pool="bare", profile=Profile.unmanaged),
        a_node("n", pool="", phase=Phase.registered, boot_id="", boots=(), slots=(), inventory_at=None),
    ]
    drive = Drive(configuration(pools, firmware={"bios": "2"}), fleet)
    watch = Watch()
    for record in drive.journal:
        watch.note(drive, record)
    drive.checks.append(watch.see)
    return drive


def play(drive: Drive, action: tuple[object, ...]) -> None:  # noqa: C901, PLR0912 - one flat table of cases
    known = drive.fleet.nodes
    match action:
        case ("fault", str(node), str(what), int(gpu)) if node in known:
            drive.fault(node, what, gpu)
        case ("leak", str(node)) if node in known:
            drive.leak(node)
        case ("verdict", str(node), str(verdict)) if node in known:
            drive.observe(node, "verdict", facts={"check": "gemm", "verdict": verdict})
        case ("inventory", str(node), int(count)) if node in known:
            parts = tuple(gpu_part(node, gpu) for gpu in range(count))
            drive.observe(node, "inventory", parts=parts)
        case ("ask", str(verb), str(target), dict(args)):
            drive.ask(verb, target, **args)
        case ("ask_about_what_is", str(verb)):
            names = {
                "release": list(drive.fleet.holds),
                "close-ticket": list(drive.fleet.tickets),
                "resume": [str(scope) for scope in drive.fleet.cell.paused],
            }.get(verb, [n for n in known if (p := known[n].plan) and p.state == "proposed"])
            for name in names[:2]:
                drive.ask(verb, name)
        case ("script", str(kind), list(answers)):
            drive.script(kind, *answers)
        case ("serve", int(count)):
            for _ in range(count):
                if drive.pending:
                    drive.now += timedelta(seconds=1)
                    drive.serve(drive.pending.pop(0))
        case ("land",):
            drive.land()
        case ("wait", int(length_s)):
            drive.wait(seconds=length_s)
        case ("jump", int(length_s)):
            drive.now += timedelta(seconds=length_s)
            drive.step(Tick())
        case ("silent", str(node)):
            drive.step(AgentSilent(node, drive.now - timedelta(seconds=40)))
        case ("heard", str(node), bool(reborn)) if node in known:
            drive.boots[node] += reborn
            drive.step(AgentHeard(node, drive.boot_of(node)))
        case ("work", str(node), list(loads)) if node in known:
            drive.see_work(node, *loads)
        case ("restart", int(gap_s), bool(happens)):
            drive.restart(gap_s, out_happens=happens)
        case ("sweep",):
            sweep(drive)
        case _:
            pass


def sweep(drive: Drive) -> None:
    found = drive.sweep()
    assert not found, "\n".join(f"the sweep found {r}" for r in drive.journal[-found:])


def settle(drive: Drive) -> None:
    """Settle: nothing that the world sends is missing any more: hands do as asked, and a minute passes."""
    drive.scripts.clear()
    drive.land()
    for name, up in drive.power.items():
        if not up:
            drive.step(AgentSilent(name, drive.now - timedelta(seconds=40)))
    drive.wait(seconds=60)


def reasons(drive: Drive) -> None:
    """Every cordon of ours has somebody who answers for it."""
    for name in drive.fleet.nodes:
        node = drive.node(name)
        assert not node.cordons or node.plan or node.waiting, f"{name} is cordoned and nobody says why"
        if node.phase is Phase.production and not drive.power.get(name):
            assert node.plan or node.waiting or node.conditions, f"{name} is off and nobody noticed"


@given(history=st.lists(actions, max_size=40))
@settings(
    max_examples=examples(120, quick=40), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
def test_any_history_is_safe_ends_at_rest_and_leaves_a_sweep_nothing(history: list[tuple[object, ...]]) -> None:
    """Mutants: a failed uncordon is laid down again at once; a rack's members that have left are planned for again."""
    drive = world()
    for action in history:
        play(drive, action)
    rest(drive)


def rest(drive: Drive) -> None:
    settle(drive)
    reasons(drive)
    sweep(drive)
    assert digest(drive.fleet) == digest(fold(drive.journal))


def drawn(chance: random.Random) -> tuple[object, ...]:
    """An action; drawn by plain chance, histories grow long and strange enough to meet what short ones miss."""
    node, kind = chance.choice(NODES), chance.choice(KINDS)
    loads = [a_workload(f"w{n}", chance.choice(([n], None)), chance.choice(WORK)) for n in range(chance.randint(0, 3))]
    length_s = chance.choice(LENGTHS_S)
    return chance.choice(
        (
            *(("fault", node, chance.choice(("off_bus", "ecc")), chance.randrange(8)) for _ in range(3)),
            *(("ask", chance.choice(sorted(VERBS)), chance.choice(TARGETS), chance.choice(ARGS)) for _ in range(4)),
            *(("serve", chance.randint(1, 12)) for _ in range(4)),
            *(("wait", length_s) for _ in range(3)),
            *(("script", kind, [chance.choice(ANSWERS) for _ in range(chance.randint(1, 4))]) for _ in range(2)),
            ("verdict", node, chance.choice(("passed", "failed", "inconclusive"))),
            ("inventory", node, chance.randrange(9)),
            ("ask_about_what_is", chance.choice(("release", "close-ticket", "approve", "reject", "resume"))),
            ("work", node, loads),
            ("jump", length_s),
            ("land",),
            ("silent", node),
            ("heard", node, chance.random() < 0.3),
            ("restart", chance.choice((1, 30_000)), chance.random() < 0.5),
            ("sweep",),
            ("leak", node) if chance.random() < 0.4 else ("land",),
        )
    )


def chance(seed: int) -> Drive:
    """A world after a long history of this seed."""
    draw = random.Random(seed)
    drive = world()
    for _ in range(draw.randint(20, 250)):
        play(drive, drawn(draw))
    return drive


def test_a_long_history_is_safe_ends_at_rest_and_leaves_a_sweep_nothing(seed: int) -> None:
    """Ten histories a seed. Mutants: a failed leave keeps its cordon on a spare; who waits is told of what has gone."""
    for number in range(examples(10, quick=2)):
        rest(chance(seed * 10 + number))
