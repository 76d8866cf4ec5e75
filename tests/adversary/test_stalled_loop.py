"""A controller whose event loop stalls for longer than its lease gives the lease up, and another takes over.

Two real processes over a real PostgreSQL.
"""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from hostler.runtime.lease_validity import LeaseTerms
from tests.end_to_end.standby_world import Cluster, well

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

LEASE_S = LeaseTerms().lease_s
HOLD = {"act": {"verb": "hold"}, "target": "rack:far", "reason": "a test"}


async def test_a_standby_takes_over_from_a_controller_whose_loop_has_stalled(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The active's loop stalls for six leases: another durably answers within three, and the first stands by after it.

    Mutant: the renewing thread asks for decisions only, which may take two minutes: the lease is renewed throughout.
    """
    monkeypatch.setenv("STALL_S", str(6 * LEASE_S))
    cell = Cluster(tmp_path, postgres_url, LEASE_S)
    cell.program = (sys.executable, str(Path(__file__).parent / "stalling.py"))
    try:
        for name in "ab":
            await cell.add(name).spawn()
        await cell.until(lambda said: len(said) == 2 and well(said), "one active, the other standing by")
        old = await cell.active()
        other = next(process for process in cell.processes if process is not old)
        began = time.monotonic()
        old.signal(signal.SIGUSR1)
        while (await other.call("POST", "/v1/intents", json=HOLD, timeout_s=1.0))[0] != 200:
            assert time.monotonic() - began < 6 * LEASE_S, "the stall was over before anybody took over"
            await asyncio.sleep(0.05)
        took_s = time.monotonic() - began
        sys.stdout.write(f"\ntakeover from a stalled loop, a lease of {LEASE_S:g} s: {took_s:.1f} s\n")
        assert LEASE_S < took_s < 3 * LEASE_S + os.getloadavg()[0] / 2
        assert '"event": "lease_not_renewed", "reason": "the event loop has been blocked' in old.said()
        await cell.until(lambda said: len(said) == 2 and well(said), "the first stands by, by itself")
        assert (await cell.active()) is other
    finally:
        await cell.close()
