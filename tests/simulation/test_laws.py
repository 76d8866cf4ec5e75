"""Small worlds in which everything goes wrong: the nine laws hold, and once healed the world comes to rest."""

import os
import subprocess
import sys

from hostler.sim.hostile import judge


def test_every_law_holds(seed: int) -> None:
    """Lost and late replies, failed commits, crashes between commit and send, lying logs, people in the way."""
    verdict = judge(seed)
    assert not verdict.violations, str(verdict)


def test_small_worlds_are_really_hostile() -> None:
    """A world in which nothing happens proves nothing."""
    verdicts = [judge(seed) for seed in range(5)]
    assert sum(verdict.takeovers for verdict in verdicts) > 5, "controllers crash"
    assert all(verdict.events > 100 for verdict in verdicts), "every world records something"


def test_one_seed_gives_one_journal_under_any_hash_seed() -> None:
    """Nothing iterates over a set: strings that hash differently change nothing."""
    digests = [_digest(hash_seed) for hash_seed in ("1", "4711")]
    assert digests[0] == digests[1]


def _digest(hash_seed: str) -> str:
    code = "from hostler.sim.hostile import judge; print(judge(3).digest, judge(12).digest)"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout
