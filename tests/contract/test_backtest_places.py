"""A backtest reads the same from a file and from PostgreSQL."""

import yaml

from hostler.journal.opening import open_journal
from hostler.ports import Batch
from hostler.sim.backtest.backtest_run import Question, backtest
from tests.kit import POLICY, Drive, a_node, configuration, pool_document

POOLS = {"train": pool_document(target=4, budget={"count": 2, "percent": 100})}


def test_recorded_history_is_replayed_from_any_journal(place: str) -> None:
    drive = Drive(configuration(POOLS), [a_node(name) for name in "abcd"])
    journal = open_journal(place)
    epoch = journal.acquire("controller")
    journal.append(Batch(tuple(drive.journal)), epoch)
    drive.checks.append(lambda _, ready: journal.append(ready.batch, epoch))
    drive.fault("a", "ecc")
    drive.run()
    drive.wait(days=2)
    drive.fault("b", "off_bus")
    drive.run()
    tree = yaml.safe_load(POLICY)
    same = backtest(Question({"policy.yaml": POLICY}, place))
    assert (same.rows, same.fidelity.explained, same.observations) == ((), 2, 3)
    tree["policy"]["rules"]["gpu.fallen_off_bus"]["remedy"] = "triage"
    found = backtest(Question({"policy.yaml": yaml.safe_dump(tree)}, place))
    assert [(row.node, row.kind, row.recorded) for row in found.rows] == [
        ("b", "changed", "acts power_cycle (immediate)")
    ]
    journal.close()
