"""Twelve stories of the lifecycle, each played to the controller loop by a hand clock and scripted hands."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from hostler.controller.inputs import AgentHeard, IntentAsked, NodeSeen
from hostler.controller.loop import Controller
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import Phase
from hostler.ports import Restored
from tests.kit import a_node, a_workload, configuration, fold, intent_of, pool_document
from tests.transcripts.scribe import Scribe

ALONE = configuration({"train": pool_document(target=1)})
PAIR = configuration({"train": pool_document(target=2)})
WATCHED = configuration({"train": pool_document(target=1, modes={"*": "observe"})})
XID_94 = "NVRM: Xid (PCI:0000:03:00): 94, pid=1, name=python3, Contained ECC error."
XID_149 = "NVRM: Xid (PCI:0000:00:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 05 (0x025001c6 0x0 0x0 0x0 0x0 0x0)"
XID_154 = "NVRM: Xid (PCI:0000:02:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
HOT = {"gpu": "gpu0", "temperature_c": 95.0, "slowdown_limit_c": 90.0, "clock_event_reasons": 0x20}
HARMLESS = "NVRM: Xid (PCI:0000:01:00): 79, said a program"


def xid_79_power_cycle() -> Scribe:
    """A GPU falls off the bus: the job on it is lost already, so the node is drained at once and power cycled."""
    story = Scribe(ALONE, [a_node("a")])
    story.see_work("a", a_workload("job-1", range(8)))
    story.note("GPU 3 falls off the bus")
    story.fault("a", gpu=3)
    story.wait(hours=1)
    return story


def reboot_remedy() -> Scribe:
    """The driver asks for a reboot of the node; the reboot's outcome is not known at first, and is observed."""
    story = Scribe(ALONE, [a_node("a")])
    story.script("reboot", "unknown")
    story.note("the driver says that the node must be rebooted")
    story.observe("a", "kernel_log", XID_154)
    story.wait(hours=1)
    return story


def pending_remedy_drains() -> Scribe:
    """A contained error waits for the customer's work, which may not be ended, and is treated once that has ended."""
    story = Scribe(ALONE, [a_node("a")])
    story.see_work("a", a_workload("job-1", range(8)))
    story.note("a contained memory error: others on the node go on")
    story.observe("a", "kernel_log", XID_94)
    story.wait(hours=2)
    story.note("the job ends by itself")
    story.see_work("a")
    story.wait(hours=1)
    return story


def rma() -> Scribe:
    """A node in triage is convicted by its checks, goes to the vendor, and comes back as if it were new."""
    story = Scribe(ALONE, [a_node("a", pool="", phase=Phase.triage)])
    story.script("run_checks", "failed")
    story.note("it is examined")
    story.wait(hours=6)
    story.note("the vendor has repaired it")
    story.ask("rma-return", "a", person="tina")
    story.wait(minutes=1)
    story.ask("certify", "a", person="tina")
    story.wait(days=1)
    return story


def zap_fails() -> Scribe:
    """Firmware cannot be written: the node waits for a person, who has it tried again."""
    story = Scribe(configuration(firmware={"BIOS": "2.1"}), [a_node("a", pool="", phase=Phase.zap)])
    story.script("update_firmware", "failed")
    story.step()
    story.wait(hours=3)
    story.note("a person has it tried again")
    story.ask("zap-again", "a", person="tina")
    story.wait(hours=3)
    return story


def burn_in_fails() -> Scribe:
    """A burn-in convicts the node: it goes to triage, and is examined there."""
    story = Scribe(ALONE, [a_node("a", pool="", phase=Phase.test)])
    story.script("run_checks", "failed")
    story.step()
    story.wait(days=1)
    return story


def spare_delivered() -> Scribe:
    """A node is replaced: it leaves its pool for triage, and a spare takes its place."""
    story = Scribe(PAIR, [a_node("a"), a_node("b"), a_node("s", pool="")])
    story.note("the customer asks for another node in the place of a")
    story.ask("request-replacement", "a", person="pat@acme")
    story.wait(hours=12)
    return story


def nvlink_incident() -> Scribe:
    """Every tray of an NVLink domain reports fatal links: one incident holds what each would be given by itself."""
    trays = [a_node(name, domains=("rack:r1", "nvlink:d1")) for name in ("t1", "t2", "t3", "t4")]
    story = Scribe(configuration({"train": pool_document(budget={"count": 4, "percent": 100})}), trays)
    story.begin_here()
    for name in ("t1", "t2", "t3", "t4"):
        story.observe(name, "kernel_log", XID_149)
    story.wait(hours=1)
    incident = next(iter(story.fleet.incidents))
    story.note("a person has replaced the switch tray")
    story.ask("close-incident", incident, person="tina")
    story.wait(hours=2)
    return story


def agent_silent() -> Scribe:
    """A silent witness of a condition: after its row's time the condition is unknown, until it is heard again."""
    story = Scribe(WATCHED, [a_node("a")])
    story.note("a GPU runs hot; the pool only observes")
    story.observe("a", "gpu_state", facts=HOT)
    story.note("the agent falls silent")
    story.silence("a")
    story.wait(hours=2)
    story.note("the agent is heard again")
    story.silent.discard("a")
    story.step(AgentHeard("a", story.boot_of("a")))
    story.wait(hours=1)
    return story


def node_returned() -> Scribe:
    """A tenant returns a node: it is drained, leaves its cluster and is erased, and proves itself before it serves."""
    story = Scribe(ALONE, [a_node("a")])
    story.see_work("a", a_workload("job-1", range(8)))
    story.note("the tenant gives the node back while a job still runs there")
    story.ask("release-node", "a", person="pat@acme")
    story.wait(hours=1)
    story.note("the job ends")
    story.see_work("a")
    story.wait(hours=2)
    return story


def rollout_stopped() -> Scribe:
    """A new rule reboots nodes for a harmless message: the rollout stops by itself within its first slice."""

    def reboots(policy: dict[str, Any]) -> None:
        policy["rules"]["kernel_log.userspace_origin"] = {"timing": "immediate", "dooms": "none", "remedy": "reboot"}

    pools = {"train": pool_document(target=40, budget={"count": 20, "percent": 50})}
    names = [f"n{number:02}" for number in range(40)]
    story = Scribe(configuration(pools), [a_node(name, domains=(f"rack:{name}",)) for name in names])
    story.begin_here()
    intent = intent_of("k1", "activate", "fleet", "ann", "a new rule", story.now)
    story.step(IntentAsked(1, intent, configuration(pools, reboots), {"policy.yaml": "…"}))
    first = next(iter(story.fleet.rollouts.values())).slices[0].nodes
    for name in (*first, next(name for name in names if name not in first)):
        story.note(f"a program on {name} writes a line that looks like a fault")
        story.observe(name, "kernel_log", HARMLESS, facility=1)
        story.wait(minutes=10)
    return story


def restore_released() -> Scribe:
    """A journal comes back from a copy: nothing is disturbed until a person has looked, and has released it."""
    story = Scribe(PAIR, [a_node("a"), a_node("b")])
    story.begin_here()
    story.note("another controller starts with a copy of the journal; b was rebooted in between")
    story.boots["b"] += 1
    upto = len(story.journal)
    story.now += timedelta(minutes=5)
    story.controller = Controller(fold(story.journal), LiveState(), {}, 9)
    copy = Restored(story.now, "/backup/cell.journal", upto)
    story._complete(story.controller.resume(story.now, "test", copy=copy))  # noqa: SLF001 - a start
    story.step(story.view(), *(AgentHeard(n, story.boot_of(n)) for n in "ab"), *(NodeSeen(n, "on") for n in "ab"))
    story.note("a GPU falls off the bus, and nobody acts")
    story.fault("a")
    story.wait(hours=1)
    story.note("a person releases the restore")
    story.ask("release-restore", "fleet")
    story.wait(hours=1)
    return story


STORIES: tuple[Callable[[], Scribe], ...] = (
    xid_79_power_cycle,
    reboot_remedy,
    pending_remedy_drains,
    rma,
    zap_fails,
    burn_in_fails,
    spare_delivered,
    nvlink_incident,
    agent_silent,
    node_returned,
    rollout_stopped,
    restore_released,
)
