"""Ports of network adapters: what an agent tells of them, and what that means."""

from pathlib import Path

from hostler.agent.collectors.network_ports import DOWN_S, Ports, read
from hostler.core.state import events as e
from tests.kit import Drive, a_node, a_workload, configuration, pool_document

UP = {"mlx5_0/1": "active"}
DOWN = {"mlx5_0/1": "down"}


def put(root: Path, port: str, text: str) -> None:
    device, number = port.split("/")
    path = root / "sys/class/infiniband" / device / "ports" / number / "state"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_states_are_read_from_sysfs(tmp_path: Path) -> None:
    put(tmp_path, "mlx5_0/1", "4: ACTIVE\n")
    put(tmp_path, "mlx5_1/1", "1: DOWN\n")
    put(tmp_path, "mlx5_2/1", "")
    assert read(tmp_path) == {"mlx5_0/1": "active", "mlx5_1/1": "down", "mlx5_2/1": "unknown"}
    assert read(tmp_path / "nothing") == {}


def test_a_port_that_worked_and_stays_down_is_told_once_and_so_is_its_return() -> None:
    """Mutants: every look tells; a flap tells."""
    ports = Ports()
    assert ports.news(UP, 0.0) == UP
    assert ports.news(UP, 10.0) == {}
    assert ports.news(DOWN, 20.0) == {}
    assert ports.news(UP, 90.0) == {}
    told = [ports.news(DOWN, 100.0 + turn * 10) for turn in range(30)]
    assert [news for news in told if news] == [{"mlx5_0/1": "down"}]
    assert told.index({"mlx5_0/1": "down"}) * 10 + 10 >= DOWN_S
    assert ports.news(UP, 500.0) == UP


def test_a_port_that_vanishes_is_down() -> None:
    ports = Ports()
    ports.news(UP, 0.0)
    assert ports.news({}, DOWN_S + 1) == DOWN


def test_a_port_that_never_worked_is_not_spoken_of() -> None:
    """Mutant: an empty cage convicts its node."""
    ports = Ports()
    assert [ports.news(DOWN, 100.0 * turn) for turn in range(9)] == [{}] * 9


def test_a_dead_link_takes_its_node_out_when_its_work_has_ended() -> None:
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    drive.see_work("a", a_workload("job"))
    drive.observe("a", "ports", facts={"port:mlx5_0/1": "active", "port:mlx5_1/1": "down"})
    drive.run()
    assert drive.operations("a") == ["cordon"]
    assert drive.evicted == []
    drive.see_work("a")
    drive.run()
    assert drive.events(e.PhaseChanged, "a")


def test_its_return_ends_the_condition_and_an_odd_word_is_no_verdict() -> None:
    drive = Drive(configuration({"train": pool_document(target=1, modes={})}), [a_node("a")])
    drive.observe("a", "ports", facts={"port:mlx5_1/1": "down"})
    assert [c.type for c in drive.node("a").conditions] == ["network.link"]
    drive.observe("a", "ports", facts={"port:mlx5_1/1": "active", "port:mlx5_2/1": "armed", "speed": "400"})
    assert {c.type for c in drive.node("a").conditions} == {"observation.unreadable"}
