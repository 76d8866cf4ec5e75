"""An image is written and a disk erased by the real thing: Ironic, its `direct` deploy, and the real ramdisk's agent.

sushy-tools is the BMC, ironic-python-agent runs in namespaces with a loop device as its only disk (`ramdisk/boot.sh`).
"""

import asyncio
import hashlib
import http.server
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import ClassVar

import aiohttp
import pytest

from hostler.core.state.operations import CleanMachine, DeployImage
from hostler.ports import RefusedError
from tests.contract.ironic_cell import IronicCell
from tests.contract.ironic_world import RealIronic, real_ironic
from tests.contract.pypi_programs import MissingError
from tests.contract.ramdisk_world import (
    DISK,
    Disk,
    MachineNetwork,
    RamdiskMachine,
    an_image,
    as_qcow2,
    machine_network,
    run,
)
from tests.contract.test_ironic_work import Work

pytestmark = pytest.mark.nightly("a real Ironic runs beside it")

SECTIONS = """
[conductor]
deploy_callback_timeout=45
clean_callback_timeout=60
[api]
ramdisk_heartbeat_timeout=30
[dhcp]
dhcp_provider=none
[deploy]
default_boot_mode=bios
http_url=http://{host}:9
enable_ata_secure_erase=false
power_off_after_deploy_failure=true
[agent]
deploy_logs_collect=never
post_deploy_get_power_state_retry_interval=1
[pxe]
kernel_append_params=ipa-debug=1
"""
ERASE = CleanMachine(("deploy.erase_devices_metadata",))


class Quiet(http.server.BaseHTTPRequestHandler):
    """Serves the files of `served` by their path."""

    served: ClassVar[dict[str, bytes]] = {}

    def do_HEAD(self) -> None:
        self._head()

    def do_GET(self) -> None:
        self.wfile.write(self._head())

    def _head(self) -> bytes:
        body = self.served.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        return body or b""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def network() -> Iterator[MachineNetwork]:
    with machine_network() as made:
        yield made


@pytest.fixture(scope="module")
def ironic(tmp_path_factory: pytest.TempPathFactory, network: MachineNetwork) -> Iterator[RealIronic]:
    folder = tmp_path_factory.mktemp("ironic")
    try:
        with real_ironic(folder, ("d1",), host=network.host, sections=SECTIONS.format(host=network.host)) as there:
            yield there
    except MissingError as missing:
        pytest.skip(f"Ironic is not here and cannot be installed: {missing}")


@pytest.fixture(scope="module")
def site(network: MachineNetwork) -> Iterator[str]:
    """Serves the ramdisk's files (which nobody runs: the agent is started itself) and images; its address."""
    Quiet.served |= {"/kernel": b"kernel", "/ramdisk": b"ramdisk"}
    with http.server.ThreadingHTTPServer((network.host, 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{network.host}:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def machine(ironic: RealIronic, network: MachineNetwork, site: str, tmp_path: Path) -> Iterator[RamdiskMachine]:
    """A machine that Ironic does not know yet; it is forgotten again."""
    disk = Disk(tmp_path)
    made = RamdiskMachine(ironic, "d1", tmp_path, disk, network)
    try:
        ironic.enrol_for_deploy("d1", f"{site}/kernel", f"{site}/ramdisk")
        made.start()
        yield made
    finally:
        made.close()
        disk.close()
        ironic.forget("d1")


@pytest.fixture
async def work(ironic: RealIronic) -> AsyncIterator[Work]:
    async with aiohttp.ClientSession() as session:
        yield Work(ironic, session)


def test_the_agent_reaches_no_disk_but_its_own(network: MachineNetwork, ironic: RealIronic, tmp_path: Path) -> None:
    """The walls around this host's disks, asked where the agent runs and as its user."""
    disk = Disk(tmp_path)
    try:
        inside = RamdiskMachine(ironic, "d1", tmp_path, disk, network).inside
        assert inside("lsblk", "-ndpo", "NAME").stdout.split() == [disk.device]
        named = inside("find", "/dev", "/sys/class/block/", "/sys/block/", "-type", "b", "-o", "-type", "l").stdout
        name = Path(disk.device).name
        assert named.split() == [disk.device, f"/sys/class/block/{name}", f"/sys/block/{name}"]
        assert inside("dd", f"of={disk.device}", "if=/dev/zero", "count=1", "conv=notrunc").returncode == 0
        for command in (
            ("mknod", "vda", "b", "254", "0"),
            ("mount", "-t", "devtmpfs", "none", "/run"),
            ("unshare", "--mount", "true"),
            ("unshare", "--user", "--map-root-user", "mount", "-t", "devtmpfs", "none", "/run"),
            ("sh", "-c", "echo 0 > /proc/sys/vm/swappiness"),
            ("touch", "/etc/hostler"),
            ("ls", "/proc/1/root/"),
            ("date", "-s", "2001-01-01"),
            ("losetup", "-f"),
        ):
            assert inside(*command).returncode != 0, command
        assert "0000000000000000" in inside("grep", "CapBnd", "/proc/self/status").stdout
    finally:
        disk.close()


async def test_an_image_is_written_by_the_ramdisk_s_agent_and_erased_again(
    work: Work, machine: RamdiskMachine, site: str, tmp_path: Path
) -> None:
    """From enrolment to a machine in use, and back to one that is free. Mutants: the work is done once Ironic took it;
    the checksum that is asked for is not the image's; cleaning ends while the agent erases."""
    raw, checksum = an_image(tmp_path)
    Quiet.served["/good.raw"] = raw
    image = DeployImage(f"{site}/good.raw", checksum)
    deployed = await work.ended("d1", image, "o2")
    assert (deployed.result, work.state("d1")) == ("done", "active"), (deployed, machine.told())
    assert machine.disk.content()[: len(raw)] == raw
    assert machine.boots[0] == "Pxe"
    work.there.call("PUT", "/v1/nodes/d1/states/provision", {"target": "deleted"})
    await asyncio.to_thread(work.there.until, "d1", provision_state="available")
    cleaned = await work.ended("d1", ERASE, "o3")
    assert (cleaned.result, work.state("d1")) == ("done", "manageable"), (cleaned, machine.told())
    left = machine.disk.content()
    assert left[:512] == bytes(512), "the table of partitions is gone"
    assert left[4 << 20 : 8 << 20] == raw[4 << 20 : 8 << 20], "metadata alone was erased"
    assert len(left) == DISK


async def test_the_whole_content_is_overwritten_and_a_disk_that_cannot_be_is_told(
    work: Work, machine: RamdiskMachine
) -> None:
    """A loop device has no ATA commands: the agent's `shred`. First it is read-only: that clean fails, says so, and
    goes on once a person has done what it names. Mutants: metadata alone is erased; a failed clean is done; its
    command is not told."""
    one = IronicCell(work, "d1")
    run("blockdev", "--setro", machine.disk.device)
    try:
        refused = await one.ended(one.ask("clean", steps="deploy.erase_devices"))
    finally:
        run("blockdev", "--setrw", machine.disk.device)
    assert (refused.result, one.told.state, work.state("d1")) == ("failed", "failed", "clean failed"), machine.told()
    assert "read-only" in one.told.detail
    assert "openstack baremetal node manage d1" in one.told.detail
    assert machine.disk.content()[:12] == b"beforebefore"
    work.there.call("PUT", "/v1/nodes/d1/states/provision", {"target": "manage"})
    await asyncio.to_thread(work.there.until, "d1", provision_state="manageable", reservation=None)
    with pytest.raises(RefusedError, match=r"maintenance unset d1"):
        await work.ask("d1", ERASE, operation="o7")
    work.there.call("DELETE", "/v1/nodes/d1/maintenance")
    cleaned = await one.ended(one.ask("clean", steps="deploy.erase_devices"))
    assert (cleaned.result, one.told.state, work.state("d1")) == ("done", "done", "manageable"), machine.told()
    assert machine.disk.content() == bytes(DISK)


async def test_an_image_of_another_kind_is_converted_as_it_is_written(
    work: Work, machine: RamdiskMachine, site: str, tmp_path: Path
) -> None:
    """The checksum is the file's, not the disk's. Mutant: every image is called raw: a qcow2's bytes are written."""
    raw, _ = an_image(tmp_path)
    packed = as_qcow2(tmp_path)
    Quiet.served["/packed.qcow2"] = packed
    outcome = await work.ended("d1", DeployImage(f"{site}/packed.qcow2", hashlib.sha256(packed).hexdigest()), "o6")
    assert (outcome.result, work.state("d1")) == ("done", "active"), (outcome, machine.told())
    assert machine.disk.content()[: len(raw)] == raw


async def test_an_image_of_another_checksum_fails_and_says_so(
    work: Work, machine: RamdiskMachine, site: str, tmp_path: Path
) -> None:
    """Mutants: the checksum is not handed to the agent; what the agent said is not told."""
    Quiet.served["/other.raw"], checksum = an_image(tmp_path)
    wrong = "ab" * 32
    outcome = await work.ended("d1", DeployImage(f"{site}/other.raw", wrong), "o4")
    assert (outcome.result, work.state("d1")) == ("failed", "deploy failed"), machine.told()
    assert "checksum" in outcome.detail
    assert checksum in outcome.detail
    assert "openstack baremetal node undeploy d1" in outcome.detail


async def test_an_agent_that_comes_after_its_time_writes_nothing(
    work: Work, machine: RamdiskMachine, site: str, tmp_path: Path
) -> None:
    """The machine hears no power off. Mutants: the late agent is handed the work; a wait has no end."""
    Quiet.served["/late.raw"], checksum = an_image(tmp_path)
    machine.ready.clear()
    machine.deaf = True
    outcome = await work.ended("d1", DeployImage(f"{site}/late.raw", checksum), "o5")
    assert (outcome.result, work.state("d1")) == ("failed", "deploy failed")
    assert "imeout reached while waiting for callback" in outcome.detail
    machine.ready.set()
    await asyncio.to_thread(machine.until_told, "Failed looking up node")
    assert work.state("d1") == "deploy failed"
    assert machine.disk.content()[:12] == b"beforebefore"
    assert (await work.ask("d1", DeployImage(f"{site}/late.raw", checksum), "observe", "o5")).result == "failed"
