"""Nodes meet: two and four processes on loopback, PyTorch and gloo; who never comes makes nobody fail."""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hostler_checks.meeting_order import order_of
from hostler_checks.plants import PERMISSION
from tests.checks.suite_runs import PACKAGE, PYTHON
from tests.end_to_end.processes import free_port

pytestmark = pytest.mark.nightly("processes compute with tensors")

GOOD: dict[str, Any] = {
    "address": "127.0.0.1", "port": 4242, "rank": 1, "names": ["n1", "n2"], "secret": "s" * 32, "via": "mlx5_0",
}  # fmt: skip


class Group:
    """Orders of one meeting on loopback, and the processes that carry them out."""

    def __init__(self, folder: Path, site: Path, *names: str, **more: Any) -> None:
        self._folder, self._site, self.names = folder, site, names
        fixed = {"address": "127.0.0.1", "port": free_port(), "names": list(names), "interface": "lo"}
        self._order = {**fixed, "secret": secrets.token_hex(16), "deadline_s": 30, "seconds": 0.5, "mib": 1, **more}

    def begin(self, name: str, *options: str, **changed: Any) -> subprocess.Popen[str]:
        own = self._folder / f"{name}.json"
        own.touch(mode=0o600)
        own.write_text(json.dumps({**self._order, "rank": self.names.index(name), "via": f"port-{name}", **changed}))
        variables = {**os.environ, "PYTHONPATH": str(self._site), "OMP_NUM_THREADS": "1", PERMISSION: "1"}
        words = (PYTHON, "-m", "hostler_checks.main", "meet", str(own), *options)
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables)


def told(child: subprocess.Popen[str], code: int = 0) -> dict[str, Any]:
    output, errors = child.communicate(timeout=120)
    assert child.returncode == code, (output, errors)
    found: dict[str, Any] = json.loads(output)
    return found


def test_two_nodes_measure_the_way_between_them(tmp_path: Path, site: Path) -> None:
    group = Group(tmp_path, site, "n1", "n2")
    found = [told(child) for child in [group.begin("n1"), group.begin("n2")]]
    assert [list(one["pairs"]) for one in found] == [["port-n1>n2"], ["port-n2>n1"]]
    assert all(one["measured"] and 0.01 < one["pairs"][key] < 2_000 for one in found for key in one["pairs"])
    assert "secret" not in json.dumps(found)


def test_four_nodes_sum_up_together(tmp_path: Path, site: Path) -> None:
    group = Group(tmp_path, site, "n1", "n2", "n3", "n4", deadline_s=60)
    found = [told(child) for child in [group.begin(name) for name in group.names]]
    assert [one["measured"] for one in found] == [True] * 4
    assert all(one["readings"]["group_gb_s"] > 0 and not one["pairs"] for one in found)


def test_a_wrong_bit_of_any_member_makes_the_group_s_rate_nought(tmp_path: Path, site: Path) -> None:
    """Mutants: a group with wrong sums was not measured; the second alone can be told to flip a bit."""
    group = Group(tmp_path, site, "n1", "n2", "n3", deadline_s=60)
    children = [group.begin(name, *(("--plant", "bit_flip") if name == "n3" else ())) for name in group.names]
    found = [told(child) for child in children]
    assert [(one["measured"], one["readings"]["group_gb_s"], one["pairs"]) for one in found] == [(True, 0.0, {})] * 3
    assert all("1 sums are wrong" in one["detail"] for one in found)


def test_members_of_a_group_say_who_did_not_come(tmp_path: Path, site: Path) -> None:
    """The first one's deadline is over before, and its store goes with it: the second has read who was absent.

    Mutants: all others are named, and nobody knows whom to leave out; who loses the store names itself.
    """
    group = Group(tmp_path, site, "n1", "n2", "n3", deadline_s=15)
    found = [told(child, code=3) for child in [group.begin("n2", deadline_s=60), group.begin("n1")]]
    assert all(one["detail"].startswith("n3 did not come, or went") for one in found), found


def test_who_never_comes_makes_nobody_fail(tmp_path: Path, site: Path) -> None:
    """Two cases: either of them stays away. Mutant: who waited has failed."""
    for name, other in (("n1", "n2"), ("n2", "n1")):
        group = Group(tmp_path, site, "n1", "n2", deadline_s=3)
        began = time.monotonic()
        found = told(group.begin(name), code=3)
        assert (found["measured"], found["pairs"]) == (False, {})
        assert found["detail"].startswith(f"{other} did not come, or went"), found["detail"]
        assert time.monotonic() - began < 40


def test_who_dies_in_the_middle_makes_nobody_fail(tmp_path: Path, site: Path) -> None:
    group = Group(tmp_path, site, "n1", "n2", seconds=60, deadline_s=20)
    first, second = group.begin("n1"), group.begin("n2")
    time.sleep(6)
    second.send_signal(signal.SIGKILL)
    found = told(first, code=3)
    assert (found["measured"], "n2 did not come, or went" in found["detail"]) == (False, True)
    second.communicate(timeout=30)


def test_a_stranger_without_the_secret_is_not_met(tmp_path: Path, site: Path) -> None:
    """Mutant: whoever connects is counted."""
    group = Group(tmp_path, site, "n1", "n2", deadline_s=5)
    both = [group.begin("n1"), group.begin("n2", secret="another secret of this run")]
    assert [told(child, code=3)["measured"] for child in both] == [False, False]


def test_a_wrong_bit_is_the_ways_fault_and_no_nodes(tmp_path: Path, site: Path) -> None:
    group = Group(tmp_path, site, "n1", "n2")
    found = [told(child) for child in [group.begin("n1"), group.begin("n2", "--plant", "bit_flip")]]
    assert found[0]["pairs"] == {"port-n1>n2": 0.0}
    assert "1 sums are wrong" in found[0]["detail"]


def test_a_slow_link_is_told_in_the_pair(tmp_path: Path, site: Path) -> None:
    group = Group(tmp_path, site, "n1", "n2")
    sound, slow = [told(child) for child in [group.begin("n1"), group.begin("n2", "--plant", "slow_link")]]
    assert slow["pairs"]["port-n2>n1"] * 100 < sound["pairs"]["port-n1>n2"]


@pytest.mark.parametrize(
    "changed",
    [
        {"port": 0}, {"port": True}, {"port": "1"}, {"rank": 2}, {"rank": -1}, {"names": ["n1"]}, {"names": "n1,n2"},
        {"names": ["n1", "n1"]}, {"names": ["n1", "n\x1b"]}, {"names": ["n1", "a>b"]}, {"secret": "short"},
        {"secret": 5}, {"deadline_s": float("nan")}, {"deadline_s": -1}, {"deadline_s": 1e9}, {"mib": 1 << 20},
        {"mib": 0}, {"address": ""}, {"via": "a>b"}, {"command": "rm"}, {"seconds": None},
    ],
)  # fmt: skip
def test_a_wrong_order_is_refused_whole(changed: dict[str, Any]) -> None:
    assert order_of(json.dumps(GOOD).encode()).others == ("n1",)
    with pytest.raises(ValueError, match=r"\w"):
        order_of(json.dumps({**GOOD, **changed}).encode())


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, "{", "null"])
def test_what_is_no_order_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        order_of(text.encode())


def test_an_order_that_others_may_read_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "order.json"
    own.write_text(json.dumps(GOOD))
    own.chmod(0o644)
    words = (sys.executable, "-m", "hostler_checks.main", "meet", str(own))
    variables = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=variables)
    assert (done.returncode, "chmod 600" in done.stderr) == (3, True)
