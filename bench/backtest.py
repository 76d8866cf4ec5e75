"""How fast recorded history is replayed through another policy. `python -m bench backtest`."""

import tempfile
from datetime import timedelta
from pathlib import Path

from bench.figures import Figures
from hostler.core.state import events as e
from hostler.journal.memory import MemoryJournal
from hostler.journal.sqlite import SqliteJournal
from hostler.ports import Batch
from hostler.sim.backtest.backtest_run import Question, backtest
from hostler.sim.failure_rates import load
from hostler.sim.fault_schedule import befall, drawn
from hostler.sim.pool_run import SETTLE_S, START, SimSettings, build

SETTINGS = SimSettings(nodes=100, days=20.0, rates="rsc1", seed=1)
LINES = 1_000
"""Lines of kernel log that each node writes beside its faults."""
ORDINARY = (
    "usb 1-1: new high-speed USB device number 2 using xhci_hcd",
    "audit: type=1400 audit(1: apparmor denied",
    "NVRM: Xid (PCI:{pci}): 13, pid=7, name=python3, Graphics SM Warp Exception",
    "mlx5_core 0000:1a:00.0 ibp26s0: Link up",
)


def main() -> Figures:
    """A hundred nodes, twenty days: under the recorded policy, and under one that reboots where it reset."""
    figures = Figures("backtest")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        documents = _history(path)
        other = {name: text.replace("remedy: gpu_reset", "remedy: reboot") for name, text in documents.items()}
        for what, asked in (("the recorded policy", documents), ("another policy", other)):
            found = backtest(Question(asked, str(path)))
            note = f"{found.records:,} records, {found.observations:,} observations"
            figures.add(f"{what}: replayed", found.records_per_s, "/s", note)
            figures.add(f"{what}: differences", len(found.rows), "")
            figures.add(f"{what}: remedies that follow", found.fidelity.explained, "", f"of {found.fidelity.remedies}")
    return figures


def _history(path: Path) -> dict[str, str]:
    """A journal of a small cluster, and the documents it was run under."""
    rates = load(SETTINGS.rates)
    drive, _ = build(SETTINGS, rates)
    world = drive.world
    assert world.training is not None, "a job runs in this world"
    world.training.begin()
    befall(world, drawn(rates, SETTINGS.nodes, SETTINGS.days, SETTINGS.seed))
    pause_s = SETTINGS.days * 86_400 / LINES
    for number in range(LINES):
        drive.run(START + timedelta(seconds=SETTLE_S + number * pause_s))
        for place, host in enumerate(world.hosts.values()):
            host.log(ORDINARY[(number + place) % len(ORDINARY)], pci="0000:1b:00")
    drive.run(START + timedelta(seconds=SETTLE_S, days=SETTINGS.days))
    assert isinstance(drive.journal, MemoryJournal), "a simulated cell keeps its journal in memory"
    seen = [o for node in world.hosts for o in drive.journal.observations_of(node, limit=10_000)]
    seen.sort(key=lambda o: (o.received or START, o.id))
    journal = SqliteJournal(path)
    journal.append(Batch(tuple(drive.journal.records()), tuple(seen)), journal.acquire("controller-0"))
    journal.close()
    events = (record.event for record in drive.journal.records())
    return next(event.documents for event in events if isinstance(event, e.ConfigActivated))
