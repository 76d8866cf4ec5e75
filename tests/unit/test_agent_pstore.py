"""Records of a dead kernel: told once, and history for whoever judges them."""

from datetime import UTC, datetime
from pathlib import Path

from hostler.agent.collectors.pstore import MAX_TEXT_CHARS, tell_crashes
from hostler.agent.local_observation import LocalObservation
from hostler.core.diagnose.judge import judge
from hostler.core.state.assets import Position
from hostler.core.state.model import Node, Observation, Phase

NOW = datetime(2025, 3, 4, tzinfo=UTC)
NODE = Node("n1", Position("c1"), "h100", Phase.production, NOW, NOW, boot_id="b", boots=("b",))
PANIC = b"Panic#1 Part1\n<4>[ 9.1] Oops: 0002 [#1] SMP\n<0>[ 9.2] Kernel panic - not syncing: Fatal exception\n"


class Kept:
    def __init__(self) -> None:
        self.cursors: dict[str, bytes] = {}
        self.seen: list[LocalObservation] = []

    def append(self, observations: list[LocalObservation], cursor: tuple[str, bytes] | None = None) -> None:
        self.seen += observations
        if cursor:
            self.cursors[cursor[0]] = cursor[1]

    def cursor(self, name: str) -> bytes | None:
        return self.cursors.get(name)


def test_a_crash_is_told_once_wherever_systemd_moves_it(tmp_path: Path) -> None:
    """Mutant: remember names instead of contents; the record that systemd has moved is then told again."""
    kept, kernel, moved = Kept(), tmp_path / "pstore", tmp_path / "moved" / "169"
    kernel.mkdir()
    moved.mkdir(parents=True)
    (kernel / "dmesg-efi-1").write_bytes(PANIC)
    assert tell_crashes(kept, 1.0, (kernel, tmp_path / "moved", tmp_path / "absent")) == 1
    (kernel / "dmesg-efi-1").rename(moved / "dmesg.txt")
    assert tell_crashes(kept, 2.0, (kernel, tmp_path / "moved")) == 0
    (kernel / "dmesg-efi-2").write_bytes(b"x" * 100_000 + b"\n" + PANIC)
    assert tell_crashes(kept, 3.0, (kernel,)) == 1
    assert len(kept.seen[-1].text) == MAX_TEXT_CHARS
    assert "Kernel panic" in kept.seen[-1].text


def test_a_crash_of_the_boot_before_disturbs_nobody_now(tmp_path: Path) -> None:
    """Mutant: judge it like a live line; every node that comes back from a panic is then power-cycled."""
    (tmp_path / "dmesg-erst-1").write_bytes(PANIC)
    kept = Kept()
    tell_crashes(kept, 1.0, (tmp_path,))
    (seen,) = kept.seen
    observation = Observation(
        "n1", "kernel_log", "agent", "s", 1, boot_id="b", text=seen.text, facility=seen.facility, facts=seen.facts
    )
    (finding,) = judge(observation, NODE, None)
    assert (finding.type, finding.part) == ("host.crashed", "")
    assert "Fatal exception" in str(finding.facts["line"])


def test_a_record_that_says_nothing_is_still_a_crash() -> None:
    observation = Observation(
        "n1", "kernel_log", "agent", "s", 1, boot_id="b", text="\x00\x00", facility=0, facts={"pstore": "dmesg-1"}
    )
    (finding,) = judge(observation, NODE, None)
    assert finding.type == "host.crashed"
