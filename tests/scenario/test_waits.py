"""Waits that the clock does not end: each ends in the batch of what ends it, and a test holds what wakes its node."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import FellowsSeen
from hostler.core.planning.next_step import next_step
from hostler.core.state.assets import Binding
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Wait
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Phase
from tests.kit import NOW, Drive, a_node, configuration, gpu_part, pool_document

ROOT = Path(__file__).parents[2]
CORE = ROOT / "src" / "hostler" / "core"
HERE = ("scenario/test_waits", "test_a_wait_without_a_moment_ends_with_what_ends_it")

WOKEN = {
    "state/formats.writable": (
        "scenario/test_formats",
        "test_a_rolling_upgrade_under_traffic_writes_nothing_new_before_the_second_is_upgraded",
    ),
    "planning/asset_certificates.renewal": (
        "scenario/test_asset_certificates",
        "test_holds_and_what_is_under_way_there_keep_it_waiting_and_the_wait_names_its_blocker",
    ),
    "planning/asset_logins.renewal": (
        "scenario/test_asset_logins",
        "test_a_hold_and_what_is_under_way_keep_it_waiting_and_the_wait_names_its_blocker",
    ),
    "planning/bmc_certificates.renewal": HERE,
    "planning/bmc_logins.renewal": HERE,
    "planning/dpu_logins.of_bmc": ("scenario/test_dpu_logins", "test_nothing_begins_under_a_pause_and_it_is_not_lost"),
    "planning/cabling.verify": (
        "scenario/test_cabling_step",
        "test_closing_the_ticket_asks_and_the_clean_run_lets_it_go_on",
    ),
    "planning/enrolment.enrol": HERE,
    "planning/execution._forward": ("scenario/test_domain_acts", "test_a_rack_waits_whole_for_its_budget"),
    "planning/execution._proposed": HERE,
    "planning/execution._step": HERE,
    "planning/execution._undo": (
        "scenario/test_domain_acts",
        "test_a_member_that_turned_back_is_opened_with_the_last_of_them",
    ),
    "planning/in_service._serve": HERE,
    "planning/in_service._unseen": (
        "scenario/test_seatrial",
        "test_a_spare_that_nobody_has_seen_is_delivered_to_nobody_and_says_why",
    ),
    "planning/in_service.serve": ("unit/test_approvals", "test_a_rack_of_ten_waits_and_says_on_every_node_what_for"),
    "planning/inventory_step.verify_inventory": (
        "scenario/test_seatrial",
        "test_once_it_is_put_right_and_seen_it_goes_on",
    ),
    "planning/machine_work._work": ("scenario/test_waits", "test_an_ironic_s_work_begins_when_its_hold_is_released"),
    "planning/next_step._bring_up": HERE,
    "planning/person_waits.waits_for_person": HERE,
    "planning/rack_bring_up._stopped_or_on": (
        "scenario/test_rack_recipe",
        "test_a_bring_up_whose_manifest_is_gone_goes_on_once_there_is_one",
    ),
    "planning/rack_bring_up._write": (
        "scenario/test_rack_recipe",
        "test_nothing_is_written_while_a_node_behind_it_serves_or_a_hold_or_pause_stands",
    ),
    "planning/rack_bring_up.next_rack_step": (
        "scenario/test_rack_recipe",
        "test_a_bring_up_on_a_restored_copy_goes_on_once_a_person_releases_it",
    ),
    "planning/rejoin_guard._outstanding": (
        "scenario/test_rejoin_guard",
        "test_after_a_restart_it_is_observed_and_not_repeated",
    ),
    "planning/rejoin_guard.turn_away": (
        "scenario/test_rejoin_guard",
        "test_a_customer_there_is_waited_for_behind_our_cordon",
    ),
    "planning/refusals.awaited": (
        "scenario/test_refused_operations",
        "test_a_request_waits_for_a_dead_bmc_before_any_cordon",
    ),
    "planning/refusals.lacking": (
        "scenario/test_refused_operations",
        "test_a_remedy_without_a_rung_above_is_a_person_s",
    ),
    "planning/refusals.wait_after_refusal": (
        "scenario/test_refused_operations",
        "test_a_phase_s_work_that_is_refused_for_good_begins_when_the_bmc_is_another",
    ),
    "planning/remediation._kept": (
        "scenario/test_incidents",
        "test_a_small_incidents_nodes_are_asked_again_at_once_when_they_are_let_go",
    ),
    "planning/remediation.protect": ("scenario/test_silence", "test_protection_never_begins_on_what_is_unknown"),
    "planning/remediation.remedy": (
        "scenario/test_stories",
        "test_an_endless_deployment_is_never_evicted_and_a_named_person_is_asked",
    ),
    "planning/remediation.retry_wait": HERE,
    "planning/restore_freeze.standing_still": (
        "scenario/test_restored",
        "test_nothing_is_disturbed_until_a_person_releases_it",
    ),
    "planning/triage_rounds.going_round": (
        "scenario/test_triage_rounds",
        "test_once_its_ticket_is_closed_it_has_all_its_rounds_again",
    ),
    "planning/triage.waits": HERE,
    "policy/presuppositions.sendable": (
        "scenario/test_presuppositions",
        "test_a_step_that_hands_kept_from_being_sent_is_sent_when_their_hold_is_released",
    ),
}
"""Function that answers with a wait without a moment → the test that ends it by something else than the clock."""


def _without_a_moment() -> Iterator[str]:
    """The functions of the core that answer with such a wait."""
    for path in sorted(CORE.rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Wait":
                    untils = [k.value for k in call.keywords if k.arg == "until"]
                    if untils and isinstance(untils[0], ast.Constant) and untils[0].value is None:
                        yield f"{path.relative_to(CORE).with_suffix('')}.{function.name}"


def test_every_wait_without_a_moment_names_the_test_that_ends_it() -> None:
    """Mutant: a new wait says `until=None`, and nothing wakes its node."""
    assert set(_without_a_moment()) == set(WOKEN)
    for file, name in WOKEN.values():
        assert f"def {name}(" in (ROOT / "tests" / f"{file}.py").read_text(), name


def a_drive(*, phase: Phase = Phase.production, **pool: Any) -> Drive:
    in_pool = "train" if phase is Phase.production else ""
    return Drive(configuration({"train": pool_document(target=1, **pool)}), [a_node("a", pool=in_pool, phase=phase)])


def faulty(*asked: tuple[str, str], **pool: Any) -> Drive:
    """A node with a fault, after somebody has asked for this."""
    drive = a_drive(**pool)
    for verb, target in asked:
        drive.ask(verb, target)
    drive.fault("a", "ecc")
    return drive


def cordoned() -> Drive:
    drive = a_drive()
    drive.ask("cordon", "a")
    return drive


def over_budget() -> Drive:
    budget = {"count": 1, "percent": 50, "reserve": 0}
    drive = Drive(configuration({"train": pool_document(target=2, budget=budget)}), [a_node("a"), a_node("b")])
    drive.ask("cordon", "b")
    drive.run()
    drive.fault("a", "ecc")
    return drive


def tried_in_vain() -> Drive:
    drive = a_drive()
    drive.script("cordon", *["refused"] * 12)
    drive.ask("cordon", "a")
    drive.wait(hours=2)
    return drive


def adopted() -> Drive:
    """A node that was adopted, and whose inventory nobody has shown yet."""
    drive = Drive(configuration({"train": pool_document(target=1)}))
    spec = '[{"id": "a", "sku": "h100", "serial": "S-a", "bmc": "ba", "pool": "train"}]'
    assert drive.ask("adopt", "fleet", nodes=spec).granted
    return drive


def in_triage() -> Drive:
    drive = a_drive()
    assert drive.ask("return-for-maintenance", "a").granted
    drive.run()
    assert drive.node("a").phase is Phase.triage
    return drive


def bring_up_held() -> Drive:
    drive = a_drive(phase=Phase.onboard)
    drive.ask("hold", "a")
    drive.ask("certify", "a")
    return drive


def login_held() -> Drive:
    drive = a_drive()
    drive.step(FellowsSeen((Fellow("this", Release().reads),)))
    drive.ask("hold", "a")
    assert drive.ask("renew-login", "a").granted
    return drive


def certificate_held() -> Drive:
    drive = a_drive()
    drive.step(FellowsSeen((Fellow("this", Release().reads),)))
    drive.ask("rebind", "a", kind="bmc_certificate", value="ab" * 32)
    drive.ask("hold", "a")
    assert drive.ask("renew-certificate", "a").granted
    return drive


def provisioner_held() -> Drive:
    bindings = (Binding("bmc", "https://10.0.0.1", NOW), Binding("serial", "SN1", NOW))
    node = replace(a_node("a", pool="", phase=Phase.debug), bindings=bindings, provisioner="ironic")
    drive = Drive(configuration({"train": pool_document(target=1)}), [node])
    drive.step(FellowsSeen((Fellow("this", Release().reads),)))
    drive.ask("hold", "a")
    assert drive.ask("inspect", "a").granted
    return drive


def ask(verb: str, target: str = "a", **args: str) -> Callable[[Drive], object]:
    return lambda drive: drive.ask(verb, target, **args)


def release(drive: Drive) -> None:
    drive.ask("release", next(iter(drive.fleet.holds)))


def close(drive: Drive) -> None:
    drive.ask("close-ticket", next(iter(drive.fleet.tickets)))


def widen(drive: Drive) -> None:
    budget = {"count": 2, "percent": 100}
    drive.activate(configuration({"train": pool_document(target=2, budget=budget)}))


def show(drive: Drive) -> None:
    parts = tuple(gpu_part("a", gpu) for gpu in range(8))
    drive.observe("a", "inventory", parts=parts, facts={"covers": "gpu"})


WAITS: dict[str, tuple[str, Callable[[], Drive], Callable[[Drive], object]]] = {
    "a plan that is proposed": ("approval", lambda: faulty(modes={"*": "propose"}), ask("approve")),
    "a hold": ("hold", lambda: faulty(("hold", "a")), release),
    "a hold on a bring-up": ("hold", bring_up_held, release),
    "a hold on a BMC's new password": ("hold", login_held, release),
    "a hold on a BMC's new certificate": ("hold", certificate_held, release),
    "a pause": ("pause", lambda: faulty(("pause", "pool:train")), ask("resume", "pool:train")),
    "a mode": ("mode", lambda: faulty(modes={"*": "observe"}), ask("mode", "train", mode="act")),
    "a cordon": ("hold", cordoned, ask("uncordon")),
    "a budget": ("budget", over_budget, widen),
    "a ticket": ("person", tried_in_vain, close),
    "a technician": ("person", lambda: a_drive(phase=Phase.onboard), ask("certify")),
    "work in triage": ("person", in_triage, ask("clear-condition", condition="operator.maintenance")),
    "an inventory": ("observation", adopted, show),
}
"""A wait → the kind of its blocker, a node `a` that waits for it, and what ends that."""


@pytest.mark.parametrize("name", WAITS)
def test_a_wait_without_a_moment_ends_with_what_ends_it(name: str) -> None:
    """Mutants: an event is taken out of `wakeups.EASING`; nobody is asked again when something eases."""
    kind, waiting, ending = WAITS[name]
    drive = waiting()
    drive.run()
    answer = next_step(DecisionContext(drive.fleet, drive.controller.live, drive.now), drive.node("a"))
    assert isinstance(answer, Wait)
    assert kind in {blocker.kind for blocker in answer.blockers}
    before, now = answer.blockers, drive.now
    ending(drive)
    assert drive.now == now, "the clock may have woken it"
    node = drive.node("a")
    assert node.waiting is None or node.waiting.blockers != before, "it still waits for what has ended"
    assert drive.sweep() == 0, "a sweep finds what nobody was woken for"


def test_an_ironic_s_work_begins_when_its_hold_is_released() -> None:
    """Beside what the node itself waits for. Mutant: only the node's own wait is looked at when a hold is released."""
    drive = provisioner_held()
    drive.run()
    assert drive.node("a").aside is None
    now = drive.now
    release(drive)
    assert drive.node("a").aside is not None
    assert drive.now == now, "the clock may have begun it"
    assert drive.sweep() == 0
