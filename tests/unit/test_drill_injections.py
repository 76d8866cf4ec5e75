"""A node's hand for drills: one token for one line, or silence; what is not typed as it must be is refused."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hostler.agent.controller_client import TELL_FIRST_S, ControllerClient, UnavailableError
from hostler.agent.drill_injections import SILENT_MOST_S, DrillInjections
from hostler.agent.host_commands import NotPossibleError
from hostler.core.state.drills import DrillFault, proof_of, unmarked
from hostler.core.state.operations import ArmDrill, InjectFault
from hostler.core.tables.drills import DRILLS


class Hand:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.silences: list[float] = []
        self.drills = DrillInjections(self.lines.append, self.silences.append)


PCI = "0000:4c:00"


@pytest.mark.parametrize("fault", [fault for fault, row in DRILLS.items() if row.line])
def test_the_line_is_the_rows_with_the_token_whose_sha256_was_told(fault: DrillFault) -> None:
    """Mutants: the token is told; another token is written."""
    hand = Hand()
    proof = hand.drills.arm(ArmDrill("d1"))
    hand.drills.inject(InjectFault("d1", fault, PCI))
    (written,) = hand.lines
    line, token = unmarked(written)
    assert line == DRILLS[fault].line.replace("{pci}", PCI)
    assert proof_of(token) == proof
    assert token not in proof


def test_a_token_is_used_once_and_by_its_drill_alone() -> None:
    """Mutants: it is kept after its use; the drill is not looked at; two drills get one token."""
    hand = Hand()
    first, second = hand.drills.arm(ArmDrill("d1")), hand.drills.arm(ArmDrill("d2"))
    assert first != second
    for drill in ("d1", "d3"):
        with pytest.raises(NotPossibleError, match="has restarted"):
            hand.drills.inject(InjectFault(drill, DrillFault.disk))
    hand.drills.inject(InjectFault("d2", DrillFault.disk))
    with pytest.raises(NotPossibleError):
        hand.drills.inject(InjectFault("d2", DrillFault.disk))
    assert len(hand.lines) == 1


@pytest.mark.parametrize(
    "act",
    [
        InjectFault("d1", DrillFault.psu),
        InjectFault("d1", DrillFault.bmc_silent),
        InjectFault("d1", DrillFault.xid79),
        InjectFault("d1", DrillFault.xid79, "0000:4c:00\nNVRM: Xid (PCI:0000:4d:00): 79"),
        InjectFault("d1", DrillFault.agent_silent),
        InjectFault("d1", DrillFault.agent_silent, silent_s=SILENT_MOST_S + 1),
        InjectFault("d1", DrillFault.agent_silent, silent_s=float("nan")),
    ],
)
def test_what_is_not_an_agents_or_out_of_bounds_is_refused(act: InjectFault) -> None:
    """Mutants: an address is written as it comes; a silence has no end."""
    hand = Hand()
    hand.drills.arm(ArmDrill("d1"))
    with pytest.raises(NotPossibleError):
        hand.drills.inject(act)
    assert (hand.lines, hand.silences) == ([], [])


async def test_a_silent_agent_sends_nothing_until_its_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First what was done is still told. Mutants: silence begins at once; it has no end."""
    now = 100.0
    monkeypatch.setattr("hostler.agent.controller_client.time.monotonic", lambda: now)
    session: Any = SimpleNamespace(request=None)  # without a token nothing is asked for
    client = ControllerClient(session, "http://127.0.0.1:9", tmp_path / "none", "a")
    client.fall_silent(60.0)

    async def said() -> str:
        with pytest.raises(UnavailableError) as why:
            await client.operations()
        return str(why.value)

    assert "drill" not in await said(), "its outcome is told first"
    now += TELL_FIRST_S
    assert "drill" in await said()
    now += 60.0
    assert "drill" not in await said()
