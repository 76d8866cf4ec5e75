"""Day 0 with Debian's own cloud-init: power-on, image, NoCloud over HTTP, phone-home, Onboard (`make test-boot`).

In the second test cloud-init installs the Debian package of the agent that the boot listener serves; its unit
enrols with a key that the machine's TPM proves, and Seatrial, Zap and a burn-in of minutes are answered by that agent.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.bringup_machines import depot
from tests.boot_guest import missing
from tests.debian_guest import missing_for_debian
from tests.end_to_end.booted import DEBIAN, DEBIAN_WITH_SUITE, BootedAgent, BootedWorld, booted_world
from tests.end_to_end.test_boot import HISTORY, register
from tests.software_tpm import SoftwareTpm, missing_for_tpm
from tests.suite_layer import PROGRAM

LACKING = missing() or missing_for_debian() or missing_for_tpm()
pytestmark = pytest.mark.skipif(bool(LACKING), reason=LACKING or "it boots")
ROOT = Path(__file__).parents[2]
HARDWARE = {"schema": 1, "erasable": True, "serials": True}
DATA = b"a tenant's data" * 1000
OPTIONS = (
    "--allow-actions --kernel-log journal --scratch /dev/nvme0n1 "
    f"--check-device cpu --check-for 40s --check-program {PROGRAM}"
)
BOOT_S = 900.0
"""A boot with the agent takes 60 s on two quiet cores without KVM, and three times that beside others' work."""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The agent's Debian package, of this tree."""
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, 'scripts'); import debian_packages as d;"
        "print(d.build(d.PACKAGES['hostler-agent'], Path(sys.argv[1]), Path(sys.argv[2])))"
    )
    folders = [str(tmp_path_factory.mktemp(name)) for name in ("staging", "made")]
    done = subprocess.run([sys.executable, "-c", code, *folders], cwd=ROOT, check=True, capture_output=True, text=True)
    return Path(done.stdout.split()[-1])


@pytest.mark.timeout(900)
async def test_debian_s_cloud_init_brings_a_machine_to_onboard(tmp_path: Path) -> None:
    """Mutants: the seed's address is no NoCloud source; cloud-init finds its user-data no cloud-config."""
    async with booted_world(tmp_path, image=DEBIAN) as world:
        await register(world)
        await world.until(lambda seen: seen["node"]["phase"] == "onboard", "/v1/nodes/n1", BOOT_S)
        told = [row["text"] for row in world.command("node", "history", "n1")["items"]]
        begins = [begin for begin in HISTORY if begin != "seed refused"]
        steps = [next(n for n, text in enumerate(told) if text.startswith(begin)) for begin in begins]
        assert steps == sorted(steps), told
        console = world.guest.console()
        assert "Cloud-init v." in console
        assert "DataSourceNoCloudNet" in console or "Datasource" in console, console[-2000:]


@pytest.mark.timeout(3600)
async def test_an_agent_comes_with_the_boot_and_answers_for_the_machine(tmp_path: Path, package: Path) -> None:
    """From power-on to production: two boots, and no verdict that the machine itself has not given.

    Mutants: the token is written without an enrolment; the TPM is not asked; the agent's word closes the window;
    Seatrial, burn-in or erasing are passed by nobody's answer.
    """
    tpm, drive = SoftwareTpm(tmp_path / "tpm", in_a_machine=True), tmp_path / "drive"
    await tpm.start()
    with drive.open("wb") as file:
        file.write(DATA)
        file.truncate(64 << 20)
    try:
        async with depot() as bios:
            sku = {"firmware": {"BIOS": "1.1.0"}, "images": {"BIOS": bios}, "sanitise": {}, "hardware": HARDWARE}
            agent = BootedAgent(package, OPTIONS, tpm.authorities(), sku)
            async with booted_world(tmp_path, image=DEBIAN_WITH_SUITE, agent=agent) as world:
                world.guest.tpm, world.guest.drive = tpm.control, drive
                await _comes_to_onboard(world)
                await world.call("POST", "/v1/nodes/n1/certify", {"reason": "cabled and seen", "args": {}})
                await _comes_to_production(world)
    finally:
        await tpm.end()
    with drive.open("rb") as file:
        assert DATA not in file.read(1 << 20), "what the tenant wrote is still there"


async def _comes_to_onboard(world: BootedWorld) -> None:
    await register(world)
    await world.until(lambda seen: seen["node"]["phase"] == "onboard", "/v1/nodes/n1", BOOT_S)
    told = _told(world)
    begins = [begin for begin in HISTORY if begin != "seed refused"]
    begins.insert(begins.index("phoned home"), "its agent enrolled with the key")
    steps = [next(n for n, text in enumerate(told) if text.startswith(begin)) for begin in begins]
    assert steps == sorted(steps), told
    assert any("proved by the TPM" in text for text in told)
    assert not [text for text in told if "refused" in text]
    shown = await world.until(lambda seen: seen["agent"]["heard"], "/v1/nodes/n1", BOOT_S)
    assert shown["node"]["boot"]["tpm"]


async def _comes_to_production(world: BootedWorld) -> None:
    def ends(seen: dict[str, Any]) -> bool:
        return seen["node"]["phase"] in ("production", "triage", "zap_fail")

    shown = await world.until(ends, "/v1/nodes/n1", 4 * BOOT_S)
    told = _told(world)
    assert shown["node"]["phase"] == "production", "\n".join(told[-40:])
    assert world.guest.starts == 2
    assert len([text for text in told if text.startswith("its agent enrolled with the key")]) == 2
    checks = {check["profile"]: check["verdict"] for check in shown["node"]["checks"]}
    assert (checks["seatrial"], checks["burn_in"]) == ("passed", "passed")
    assert world.machine.firmware["BIOS"] == "1.1.0"
    assert any(text.startswith("sanitise done") for text in told), told


def _told(world: BootedWorld) -> list[str]:
    return [row["text"] for row in world.command("node", "history", "n1", "--limit", "500")["items"]]
