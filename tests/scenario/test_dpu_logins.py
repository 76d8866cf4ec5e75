"""BMCs of a node's DPUs get passwords of their own: first contact, age, swap, and the end before it is retired."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import Replied
from hostler.core.state import events as e
from hostler.core.state.assets import DPU_BMC, Binding
from hostler.core.state.bmc_login import BmcLogin
from hostler.core.state.dpu_login import DPU_LOGIN_FAILED, RENEW_DPU, DpuLogin, login_at
from hostler.core.state.model import Facts, Operation, Outcome, Phase
from hostler.core.state.operations import RenewDpuLogin, WipeDpuLogin
from hostler.core.state.packed_strings import pairs
from tests.kit import NOW, Drive, a_node, configuration, digest, fold

A, B = "https://dpu-a", "https://dpu-b"
PIN = "ab" * 32
WIPE = "wipe_dpu_login"
DAY = timedelta(days=1)


class Cards(Drive):
    """A node with two DPUs; `behind` says which card is behind which address, and so what its BMC shows."""

    behind: Mapping[str, str] = {A: "MT1", B: "MT2"}

    def _reply(self, operation: Operation, result: str) -> None:
        act = operation.act
        if not isinstance(act, RenewDpuLogin):
            super()._reply(operation, result)
            return
        serial = self.behind[act.bmc]
        result = result if serial in act.cards else "refused"
        facts: Facts = {"username": "root", "pending": False, "tried": 0, "tries": 3}
        facts |= {"serial": serial, "certificate": PIN} if result == "done" else {}
        self.step(
            Replied(Outcome(operation.id, operation.node, result, "as scripted", facts, attempt=operation.attempt))
        )

    def swap(self, **behind: str) -> None:
        """Tell the node's DPUs anew, as its agent does after a technician was there."""
        told: Facts = {f"dpu.{slot}": serial for slot, serial in behind.items()}
        self.observe("a", "inventory", facts={"covers": "", **told})

    def login(self, bmc: str = A) -> DpuLogin:
        return login_at(self.node("a").dpu_logins, bmc)

    def whys(self) -> list[tuple[str, str]]:
        return [(event.bmc, event.why) for event in self.events(e.DpuLoginDue)]


def every_90_days(policy: dict[str, Any]) -> None:
    policy["bmc_credentials"] = {"renew_every_s": 90 * 86_400.0}


def a_cell(*, every: bool = True, named: str = f"{A} {B}", quiet: bool = False, **fields: Any) -> Cards:
    policy = every_90_days if every else None
    base: dict[str, Any] = {
        "phase": Phase.onboard,
        "hardware_own": pairs([("agent/dpu.n0", "MT1"), ("agent/dpu.n1", "MT2")]),
    }
    node = a_node("a", pool="", **(base | fields))
    bindings = (Binding("serial", "S-a", NOW), Binding(DPU_BMC, named, NOW))
    return Cards(configuration(policy=policy), [replace(node, bindings=bindings)], quiet=quiet)


OURS = BmcLogin(renewed_at=NOW - DAY, username="root")
BOTH = (DpuLogin(A, OURS, "MT1", PIN, ("MT1", "MT2")), DpuLogin(B, OURS, "MT2", PIN, ("MT1", "MT2")))


def test_each_gets_one_at_first_contact_one_after_the_other_and_the_next_by_age() -> None:
    """Mutants: one stands for both; both are renewed at once; age is nobody's matter; the certificate is not pinned."""
    cell = a_cell()
    cell.run()
    assert cell.whys() == [(A, "first contact"), (B, "first contact")]
    assert [(cell.login(bmc).serial, cell.login(bmc).certificate) for bmc in (A, B)] == [("MT1", PIN), ("MT2", PIN)]
    began = [event.operation for event in cell.events(e.OperationStarted)]
    assert [one.kind for one in began] == [RENEW_DPU] * 2
    assert all(one.aside for one in began)
    cell.wait(days=89)
    assert len(cell.whys()) == 2
    cell.wait(days=2)
    assert cell.whys()[2:] == [(A, "the password is older than 90 d"), (B, "the password is older than 90 d")]
    acts = [event.operation.act for event in cell.events(e.OperationStarted)][2:]
    assert [act.certificate for act in acts if isinstance(act, RenewDpuLogin)] == [PIN, PIN]
    assert digest(fold(cell.journal)) == digest(cell.fleet)


def test_a_swapped_card_gets_one_and_its_neighbour_keeps_its_own() -> None:
    """Mutants: a swap waits for the password's age; every card is renewed."""
    cell = a_cell(dpu_logins=BOTH)
    cell.run()
    assert not cell.whys()
    cell.behind = {A: "MT9", B: "MT2"}
    cell.swap(n0="MT9", n1="MT2")
    cell.run()
    assert cell.whys() == [(A, "the card MT1 is not in the node any more, and another is")]
    assert cell.login(A).serial == "MT9"
    cell.wait(days=1)
    assert len(cell.whys()) == 1


def test_a_card_that_died_has_nothing_asked_of_its_bmc() -> None:
    cell = a_cell(dpu_logins=BOTH)
    cell.swap(n1="MT2")
    cell.wait(days=1)
    assert not cell.whys()


def test_one_that_shows_another_card_is_a_ticket_and_not_tried_again_until_a_person_says_so() -> None:
    """Mutants: it is tried every minute; the ticket stays; its word of a certificate is not taken."""
    cell = a_cell()
    cell.behind = {A: "MT7", B: "MT2"}
    cell.run()
    cell.wait(days=1)
    assert len(cell.events(e.OperationStarted)) == 2
    assert [c.type for c in cell.node("a").conditions] == [DPU_LOGIN_FAILED]
    (ticket,) = cell.fleet.tickets_about("a")
    assert ticket.fault == DPU_LOGIN_FAILED
    assert "hostler bmc credentials rotate a --dpu ADDRESS" in ticket.action
    cell.behind = {A: "MT1", B: "MT2"}
    assert cell.ask("renew-login", "a", dpu=A, certificate="AB:" * 31 + "AB").granted
    cell.run()
    assert not cell.node("a").conditions
    assert not cell.fleet.tickets_about("a")
    (act,) = [event.operation.act for event in cell.events(e.OperationStarted)][2:]
    assert act == RenewDpuLogin(A, ("MT1", "MT2"), PIN)


def test_who_clears_its_condition_has_it_tried_again() -> None:
    """Mutant: the condition is raised again at once by what it was cleared of."""
    cell = a_cell(named=A)
    cell.behind = {A: "MT7"}
    cell.run()
    cell.wait(minutes=5)
    assert len(cell.events(e.OperationStarted)) == 1
    cell.behind = {A: "MT1"}
    assert cell.ask("clear-condition", "a", condition=DPU_LOGIN_FAILED).granted
    cell.wait(minutes=5)
    assert cell.login().serial == "MT1"
    assert not cell.node("a").conditions


def test_what_a_person_asks_is_named_and_what_cannot_be_is_refused_in_words() -> None:
    """Mutants: an address of nobody's is entered; a certificate is taken for the node's own BMC."""
    cell = a_cell(every=False, dpu_logins=BOTH)

    def refused(**args: str) -> str:
        reply = cell.ask("renew-login", "a", **args)
        assert not reply.granted
        return reply.text

    assert f"is no BMC of a DPU of a; it has {A}, {B}" in refused(dpu="https://stranger")
    assert "give dpu with certificate" in refused(certificate=PIN)
    assert "SHA-256" in refused(dpu=A, certificate="beef")
    assert cell.ask("renew-login", "a", dpu=A, anew="true").granted
    cell.run()
    (started,) = cell.events(e.OperationStarted)
    assert started.operation.act == RenewDpuLogin(A, ("MT1", "MT2"), PIN, anew=True)
    cell.swap(n0="")
    assert "shows no DPU with a serial number" in refused(dpu=A)


def test_nothing_begins_under_a_pause_and_it_is_not_lost() -> None:
    """The node itself waits for a technician. Mutant: what the renewal waited for is over, and nobody asks again."""
    cell = a_cell(quiet=True)
    assert cell.ask("pause", "fleet").granted
    cell.begin(2)
    cell.wait(minutes=5)
    assert not cell.events(e.OperationStarted)
    assert cell.ask("resume", "fleet").granted
    cell.wait(minutes=10)
    assert len(cell.events(e.OperationStarted)) == 2


@pytest.mark.parametrize("happens", [False, True])
def test_a_crash_amid_a_renewal_is_gone_on_from(happens: bool) -> None:
    """The next controller observes first. Mutant: it is sent anew though it was done."""
    cell = a_cell(named=A)
    cell.restart(out_happens=happens)
    cell.run()
    cell.wait(minutes=2)
    assert cell.login().serial == "MT1"
    assert len(cell.performed) == 1


def retired(cell: Cards) -> bool:
    return "a" not in cell.fleet.nodes and "a" in cell.fleet.retired


def test_they_have_their_vendors_passwords_before_the_node_is_retired() -> None:
    """Mutants: only the node's own BMC is wiped; the node is gone before; one that was never ours is wiped."""
    cell = a_cell(every=False, dpu_logins=BOTH[:1])
    reply = cell.ask("retire", "a")
    assert (
        reply.text
        == f"a is retired once the password of account 'root' on its DPU's BMC {A}, and in its secret is wiped"
    )
    cell.run()
    assert retired(cell)
    (started,) = cell.events(e.OperationStarted)
    assert started.operation.act == WipeDpuLogin(A, ("MT1", "MT2"), PIN)


def test_the_node_s_own_bmc_is_wiped_last() -> None:
    """Mutant: a DPU that does not answer leaves the node with no password of ours, and without its own BMC."""
    cell = a_cell(every=False, dpu_logins=BOTH, bmc_login=OURS)
    own = (*cell.node("a").bindings, Binding("bmc", "https://bmc/a", NOW))
    cell = Cards(cell.fleet.configuration, [replace(cell.node("a"), bindings=own)])
    assert cell.ask("retire", "a").granted
    cell.run()
    assert retired(cell)
    assert cell.operations() == [WIPE, WIPE, "wipe_bmc_login"]


@pytest.mark.parametrize("answer", ["refused", "failed"])
def test_one_that_is_not_wiped_keeps_the_node_and_one_that_is_is_not_asked_again(answer: str) -> None:
    """Mutants: a failed wipe retires the node; what is left is not said."""
    cell = a_cell(every=False, dpu_logins=BOTH)
    cell.script(WIPE, "done", answer, answer)
    assert cell.ask("retire", "a").granted
    cell.run()
    assert not retired(cell)
    (ticket,) = cell.fleet.tickets_about("a")
    assert (ticket.kind, "or of a DPU's, was not wiped" in ticket.summary) == ("retire", True)
    assert [one.bmc for one in cell.node("a").dpu_logins] == [B]
    told = cell.ask("retire", "a", credentials_left="its card is dead")
    assert told.text.startswith(f"a retired; left behind is the password of account 'root' on its DPU's BMC {B}")
    assert retired(cell)
