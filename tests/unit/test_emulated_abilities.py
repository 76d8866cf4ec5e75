"""Emulated agents with the abilities of real ones: what a fleet of them waits for, a real one would wait for."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hostler.agent.host_commands import NotPossibleError
from hostler.agent.machine import ANSWERED
from hostler.agent.main import AgentSettings
from hostler.agent.node_operations import PROFILES
from hostler.core.state.gate_expectation import Expected
from hostler.core.state.model import Verdict
from hostler.core.state.operations import DriveToErase, Sanitise
from hostler.sim.emulated.emulated_server import EmulatedHost, EmulatedServer, h100


async def test_with_real_abilities_an_emulated_agent_answers_and_erases_no_more_than_a_real_one(tmp_path: Path) -> None:
    """Mutants: what it does not name it answers; it erases drives that nobody has named; the option changes nothing."""
    settings = AgentSettings("n", "http://127.0.0.1:9", tmp_path / "t", tmp_path, kernel_log=str(tmp_path / "kmsg"))
    host = EmulatedHost("n", h100("S"), settings, lambda: datetime.now(UTC), 1e9)
    server = EmulatedServer(host, "b1")
    assert set(server.profiles()) == PROFILES
    order = Sanitise((DriveToErase("nvme0n1", "S1"),), tpm=True)
    told = server.sanitise(order)
    assert [(one.serial, one.method) for one in told.drives] == [("S1", "emulated")], "no more than is named"
    host.real_abilities = True
    assert set(server.profiles()) == ANSWERED
    for profile in PROFILES - ANSWERED:
        assert server.check(profile, Expected()).verdict is Verdict.inconclusive
    with pytest.raises(NotPossibleError, match="--scratch"):
        server.sanitise(order)
    await host.stop()
