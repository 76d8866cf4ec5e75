"""GPU resets beside fake tools: nobody is in the way, clients come back whatever happens, links are counted."""

from pathlib import Path

import pytest

from hostler.agent import gpu_reset as resetting
from hostler.agent.gpu_holders import holders
from hostler.agent.gpu_reset import ResetRequest, reset
from hostler.agent.host_commands import ActFailedError, FateUnknownError, NotPossibleError, ResourceHeldError
from hostler.core.state.model import RESET_CLIENTS
from tests.unit.gpu_tools import Machine

DCGM, PERSISTENCED, FABRIC = "nvidia-dcgm.service", "nvidia-persistenced.service", "nvidia-fabricmanager.service"
BASEBOARD = ResetRequest((), (DCGM, PERSISTENCED), FABRIC)
POD = "/kubepods.slice/kubepods-pod3f2a1c44_9a1b_4c55_8c11_0123456789ab.slice/cri-containerd-{}.scope".format("ab" * 32)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    made.tell(active=[DCGM, PERSISTENCED, FABRIC])
    monkeypatch.setenv("PATH", made.path)
    monkeypatch.setattr(resetting, "LINKS_S", 1.0)
    monkeypatch.setattr(resetting, "POLL_S", 0.5)
    return made


def test_a_baseboard_is_reset_with_its_clients_aside_and_its_fabric_restarted(machine: Machine) -> None:
    """Mutants: clients are started in the order in which they were stopped; the fabric is not restarted."""
    told = reset(BASEBOARD, machine.root)
    assert machine.asked("systemctl") == [
        f"systemctl stop {DCGM}",
        f"systemctl stop {PERSISTENCED}",
        f"systemctl restart {FABRIC}",
        f"systemctl start {PERSISTENCED}",
        f"systemctl start {DCGM}",
    ]
    assert machine.knows("resets") == ["all"]
    assert told == (f"reset all GPUs; stopped and started {DCGM}, {PERSISTENCED}; 144 NVLinks before, no fewer now")


def test_one_gpu_is_reset_alone_beside_work_on_the_others(machine: Machine) -> None:
    """Mutants: a holder of another GPU is in the way; the index is taken for the device file's number."""
    machine.minor(3, 6)
    machine.minor(6, 3)
    machine.process(4711, "python3", POD, "/dev/nvidiactl", "/dev/nvidia3")
    machine.tell(active=[])
    told = reset(ResetRequest(("gpu3",), (DCGM,)), machine.root)
    assert machine.knows("resets") == ["3"]
    assert machine.asked("systemctl") == [], "who did not run is not started"
    assert told.startswith("reset gpu3; no client was running; ")


def test_a_customers_process_is_named_and_nothing_is_reset(machine: Machine) -> None:
    """Mutant: the clients stay stopped where the reset was not begun."""
    machine.process(4711, "python3", POD, "/dev/nvidia5")
    machine.process(812, "trainer", "/system.slice/slurmstepd.scope/job_77/step_0", "/dev/nvidiactl")
    machine.process(99, "bash", "/user.slice", "/dev/null")
    with pytest.raises(ResourceHeldError) as told:
        reset(BASEBOARD, machine.root)
    assert told.value.holders == (
        "trainer (pid 812, Slurm job 77)",
        "python3 (pid 4711, pod 3f2a1c44-9a1b-4c55-8c11-0123456789ab, container abababababab)",
    )
    assert machine.knows("resets") == []
    assert sorted(str(machine.knows("active")).split()) == sorted(str([FABRIC, PERSISTENCED, DCGM]).split())


def test_who_holds_it_without_a_file_of_its_own_is_told_by_the_driver(machine: Machine) -> None:
    """NVML lists a process of another mount namespace, whose files tell nothing."""
    machine.process(31, "vllm", "/system.slice/vllm.service")
    machine.tell(apps=[[31, 2]])
    with pytest.raises(ResourceHeldError, match=r"vllm \(pid 31, vllm.service\)"):
        reset(ResetRequest(("gpu2",)), machine.root)
    reset(ResetRequest(("gpu3",)), machine.root)
    assert machine.knows("resets") == ["3"]


def test_a_process_whose_number_the_driver_does_not_tell_is_looked_for_by_its_files(machine: Machine) -> None:
    """Mutant: a row without a number ends the reset with an error of ours."""
    machine.tell(apps=[["[N/A]", 2]])
    reset(ResetRequest(("gpu2",)), machine.root)
    assert machine.knows("resets") == ["2"]


def test_a_persistence_daemon_in_a_container_is_nvidia_smis_own_to_ask(machine: Machine) -> None:
    """Mutants: it is in the way of every reset beside a driver's container; where it does hold on nobody is named."""
    machine.process(77, "nvidia-persiste", POD, *(f"/dev/nvidia{gpu}" for gpu in range(8)))
    reset(BASEBOARD, machine.root)
    assert machine.knows("resets") == ["all"]
    machine.tell(in_use=True)
    with pytest.raises(ResourceHeldError) as told:
        reset(BASEBOARD, machine.root)
    assert [one.split(",")[0] for one in told.value.holders] == ["nvidia-persiste (pid 77"]


def test_who_comes_in_between_makes_it_busy_and_no_fault(machine: Machine) -> None:
    machine.tell(in_use=True)
    with pytest.raises(ResourceHeldError, match="in use by"):
        reset(BASEBOARD, machine.root)
    assert len(machine.asked("systemctl start")) == 2


@pytest.mark.parametrize(
    ("broken", "why"),
    [([DCGM], f"{DCGM} did not come back"), ([FABRIC], "Job for nvidia-fabricmanager.service failed")],
)
def test_a_service_that_does_not_come_back_is_a_failed_reset(machine: Machine, broken: list[str], why: str) -> None:
    """Mutant: a client that fails to start keeps the others stopped."""
    machine.tell(broken=broken)
    with pytest.raises(ActFailedError, match=why) as told:
        reset(BASEBOARD, machine.root)
    assert not isinstance(told.value, ResourceHeldError)
    assert PERSISTENCED in str(machine.knows("active"))


@pytest.mark.parametrize(
    ("dies", "why"), [(DCGM, f"the GPUs were reset, but {DCGM} did not come back: it was"), (FABRIC, FABRIC)]
)
def test_a_service_that_starts_and_does_not_stay_is_a_failed_reset(machine: Machine, dies: str, why: str) -> None:
    """Mutant: systemctl's word that it was started is enough."""
    machine.tell(dies=[dies])
    with pytest.raises(ActFailedError, match=f"^{why}.*started and does not run"):
        reset(BASEBOARD, machine.root)


def test_a_machine_that_has_no_fabric_state_is_not_waited_for(machine: Machine) -> None:
    machine.tell(fabric="N/A")
    assert reset(BASEBOARD, machine.root).startswith("reset all GPUs; ")
    machine.tell(fabric="In Progress")
    assert reset(ResetRequest(("gpu3",)), machine.root), "nobody has said that this one's links need a fabric"


@pytest.mark.parametrize(
    ("facts", "wanted", "why"),
    [
        ({"links_after": 17}, BASEBOARD, "gpu0 has 17 of 18 NVLinks up"),
        ({"links": 12, "links_after": 12}, ResetRequest(links=18), "gpu7 has 12 of 18"),
        ({"fabric": "In Progress"}, BASEBOARD, "fabric state is In Progress"),
    ],
)
def test_links_and_fabric_must_be_back(
    machine: Machine, facts: dict[str, object], wanted: ResetRequest, why: str
) -> None:
    """Mutants: links are not counted; fewer than the model has pass where as few were up before."""
    machine.tell(**facts)
    with pytest.raises(ActFailedError, match=why):
        reset(wanted, machine.root)


def test_a_reset_that_hangs_may_have_worked_and_leaves_no_client_stopped(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.tell(hangs=True)
    monkeypatch.setattr(resetting, "RESET_S", 0.5)
    with pytest.raises(FateUnknownError, match="did not end"):
        reset(BASEBOARD, machine.root)
    assert len(machine.asked("systemctl start")) == 2


def test_only_clients_of_the_platform_are_ever_stopped(machine: Machine) -> None:
    with pytest.raises(NotPossibleError, match=r"sshd\.service may not be stopped"):
        reset(ResetRequest(clients=("sshd.service",)), machine.root)
    assert machine.asked("systemctl") == []
    assert all(unit.endswith(".service") for unit in RESET_CLIENTS)


def test_a_gpu_that_is_not_listed_is_not_reset(machine: Machine) -> None:
    machine.tell(gpus=3)
    with pytest.raises(ActFailedError, match="lists 0 of gpu3"):
        reset(ResetRequest(("gpu3",)), machine.root)
    reset(ResetRequest(("0000:1c:00.0",)), machine.root)
    assert machine.knows("resets") == ["1"]


def test_a_process_that_ends_while_it_is_looked_at_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    assert holders(tmp_path, ("/dev/nvidia0",), (8,)) == ()
