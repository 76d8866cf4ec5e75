"""Bodies of version 2: an operation was a kind and its arguments text; both ways nothing is lost."""

import msgspec
import pytest
from msgspec.structs import replace

from hostler.core.state import operations as op
from hostler.core.state import snapshot, version_2
from hostler.core.state.events import OperationStarted, PlanRecorded
from hostler.core.state.fleet import Fleet
from hostler.core.state.gate_expectation import Expected
from hostler.core.state.model import Node, Operation, Step
from hostler.core.state.pass_rules import PassRules, ReadingRule
from hostler.core.state.scopes import scope_hook, text_hook
from hostler.core.state.upcast import downcast, upcast
from tests.acts import an_act
from tests.contract.journal_samples import sample
from tests.kit import a_node

FLASH = {
    "component": "BIOS",
    "version": "2.0",
    "image": "https://images/bios",
    "sha256": "ab",
    "good": "2.0 or 1.9",
    "at_least": "1.5",
    "activates": "dc_cycle",
    "needs": "BMC=1.5,CPLD=0=1",
    "downgrade": "yes",
    "push": "yes",
    "targets": "/a,/b",
}
RECORDED: list[tuple[str, dict[str, str], op.AnyAct]] = [
    (
        "update_firmware",
        FLASH,
        op.WriteFirmware(
            "BIOS",
            "2.0",
            "https://images/bios",
            "ab",
            ("2.0", "1.9"),
            "1.5",
            "dc_cycle",
            {"BMC": "1.5", "CPLD": "0=1"},
            downgrade=True,
            push=True,
            targets=("/a", "/b"),
        ),
    ),
    ("update_firmware", {"component": "BMC", "version": "1", "image": ""}, op.WriteFirmware("BMC", "1")),
    ("verify_firmware", {"BIOS": "2.0 or 1.9", "BMC": "1"}, op.VerifyFirmware({"BIOS": ("2.0", "1.9"), "BMC": ("1",)})),
    ("verify_firmware", {}, op.VerifyFirmware()),
    ("reset_bmc", {"unless_listed": "BIOS,BMC"}, op.ResetBmc(("BIOS", "BMC"))),
    ("reset_bmc", {}, op.ResetBmc()),
    ("gpu_reset", {}, op.ResetGpus()),
    (
        "gpu_reset",
        {"gpu": "gpu1,0000:1b:00.0", "clients": "dcgm,persistence", "fabric": "fm", "links": "18"},
        op.ResetGpus(("gpu1", "0000:1b:00.0"), ("dcgm", "persistence"), "fm", 18),
    ),
    ("run_checks", {"profile": "burn_in"}, op.RunChecks("burn_in")),
    (
        "run_checks",
        {"profile": "gate", "expects": '{"gpus":8,"memory_gib":2048.0}'},
        op.RunChecks("gate", Expected(8, memory_gib=2048.0)),
    ),
    (
        "run_checks",
        {"profile": "burn_in", "rules": '{"hours":36.0,"limits":{"gemm_perf":{"bf16_tflops":{"floor":600.0}}}}'},
        op.RunChecks("burn_in", rules=PassRules(36.0, limits={"gemm_perf": {"bf16_tflops": ReadingRule(600.0)}})),
    ),
    ("evict", {"workloads": "a,b"}, op.Evict(("a", "b"))),
    ("join_cluster", {"token_ttl_s": "900"}, op.JoinCluster(900.0)),
    ("join_cluster", {}, op.JoinCluster()),
    ("issue_join_token", {"cluster": "k1", "token_ttl_s": "0.5"}, op.IssueJoinToken("k1", 0.5)),
    ("idle_check", {"profile": "idle", "image": "registry/checks:1"}, op.IdleCheck("idle", "registry/checks:1")),
    ("cordon_uninvited", {"cluster": "k1"}, op.CordonUninvited("k1")),
    ("verify_inventory", {"missing": "convicts"}, op.VerifyInventory(convicts=True)),
    ("verify_inventory", {"missing": "waits"}, op.VerifyInventory()),
    ("verify_cabling", {"fabric": "ib", "device": "n1"}, op.VerifyCabling("ib", "n1")),
    ("sanitise", {}, op.Sanitise()),
    (
        "sanitise",
        {
            "drives": '[{"slot":"drive0","serial":"S,1","model":"M"}]',
            "keep": '["drive1"]',
            "tpm": "yes",
            "accounts": "[]",
        },
        op.Sanitise((op.DriveToErase("drive0", "S,1", "M"),), ("drive1",), tpm=True, accounts=()),
    ),
    ("sanitise", {"drives": "{"}, op.RetiredOperation("sanitise", {"drives": "{"})),
    ("cordon", {}, op.CordonNode()),
    ("set_boot_network", {}, op.SetBootNetwork()),
    ("power_off_graceful", {"x": "y"}, op.RetiredOperation("power_off_graceful", {"x": "y"})),
    ("cordon", {"force": "yes"}, op.RetiredOperation("cordon", {"force": "yes"})),
    ("update_firmware", {"component": "BIOS"}, op.RetiredOperation("update_firmware", {"component": "BIOS"})),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "args", "act"), RECORDED, ids=range(len(RECORDED)))
def test_arguments_that_were_text_are_read_and_written_as_text_again(
    kind: str, args: dict[str, str], act: op.AnyAct
) -> None:
    """Unknown arguments are kept as they were. Mutant: an unknown kind stops the journal."""
    started: OperationStarted = sample(OperationStarted)
    new = msgspec.json.decode(msgspec.json.encode(replace(started, operation=replace(started.operation, act=act))))
    old = downcast(new, 2, 1)
    assert (old["operation"]["kind"], old["operation"]["args"]) == (kind, args)
    read = msgspec.convert(upcast(old, 1), OperationStarted).operation
    assert (read.act, read.kind) == (act, kind)


@pytest.mark.parametrize(
    ("kind", "args", "act"),
    [
        ("run_checks", {}, op.RunChecks("gate")),
        ("run_checks", {"profile": "gate", "expects": "{"}, op.RunChecks("gate")),
        (
            "run_checks",
            {"profile": "burn_in", "rules": '{"patience": 3}'},
            op.RetiredOperation("run_checks", {"profile": "burn_in", "rules": '{"patience": 3}'}),
        ),
        ("run_checks", {"profile": "gate", "expects": '{"gpus": -1}'}, op.RunChecks("gate")),
        ("gpu_reset", {"gpu": "all", "links": "0"}, op.ResetGpus()),
        ("gpu_reset", {"links": "many"}, op.RetiredOperation("gpu_reset", {"links": "many"})),
        ("verify_firmware", {"baseline": "sku"}, op.VerifyFirmware()),
        ("verify_inventory", {}, op.VerifyInventory()),
    ],
)
def test_older_words_are_read_too(kind: str, args: dict[str, str], act: op.AnyAct) -> None:
    """An expectation that nobody can read is none, and its gate is inconclusive. Mutant: it stops the journal."""
    assert version_2.act_up(kind, args) == act


@pytest.mark.parametrize("kind", sorted(op.ACTS))
def test_each_kind_survives_the_way_back_and_forth(kind: str) -> None:
    """Mutant: a new argument is written for older controllers under no name."""
    act = sample(op.ACTS[kind])
    if kind == "set_boot_network":
        act = op.SetBootNetwork("uefi_http", "https://a/b")
    assert version_2.act_up(kind, version_2.act_down(act)) == act


def test_a_plans_steps_are_read_with_it() -> None:
    recorded: PlanRecorded = sample(PlanRecorded)
    steps = (Step(op.CordonNode(), 60.0), Step(op.RunChecks("gate", Expected(8)), 300.0, optional=True))
    event = replace(recorded, plan=replace(recorded.plan, steps=steps))
    old = downcast(msgspec.json.decode(msgspec.json.encode(event, enc_hook=text_hook)), 3, 2)
    assert [step["operation"] for step in old["plan"]["steps"]] == ["cordon", "run_checks"]
    assert msgspec.convert(upcast(old, 2), PlanRecorded, dec_hook=scope_hook) == event


def test_what_is_under_way_in_an_older_snapshot_goes_on() -> None:
    """Mutants: one of the four places is forgotten; a node with nothing under way is read the slow way and loses."""
    operation: Operation = sample(Operation)
    evict = replace(operation, act=an_act("evict", workloads=["w1"]))
    busy: Node = a_node(
        "a",
        plan=replace(sample(PlanRecorded).plan, steps=(Step(op.DrainNode(), 60.0),)),
        operation=evict,
        settling=(evict, replace(evict, id="o2")),
        aside=replace(operation, act=op.CordonUninvited("k1")),
    )
    fleet = Fleet()
    for node in (busy, a_node("b")):
        fleet.put_node(node.id, node)
    fleet.merge()
    body = msgspec.msgpack.decode(snapshot.dump(snapshot.state_of(fleet)))
    older = body | {"version": 4, "nodes": [version_2.node_down(node) for node in body["nodes"]]}
    read = snapshot.load(msgspec.msgpack.encode(older))
    assert read.nodes["a"] == fleet.nodes["a"]
    assert read.nodes["b"] == fleet.nodes["b"]
