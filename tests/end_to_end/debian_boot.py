"""Day 0 with Debian's own cloud-init: power-on, image, NoCloud over HTTP, phone-home, Onboard (`make test-boot`).

In the second test cloud-init installs the Debian package of the agent that the boot listener serves; its unit
enrols with a key that the machine's TPM proves, and Seatrial, Zap and a burn-in of minutes are answered by that agent.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.boot_guest import missing
from tests.debian_guest import missing_for_debian
from tests.end_to_end.booted import DEBIAN, BootedAgent, booted_world
from tests.end_to_end.test_boot import HISTORY, register
from tests.software_tpm import SoftwareTpm, missing_for_tpm

LACKING = missing() or missing_for_debian() or missing_for_tpm()
pytestmark = pytest.mark.skipif(bool(LACKING), reason=LACKING or "it boots")
ROOT = Path(__file__).parents[2]
BOOT_S = 600.0
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
    """Mutants: the token is written without an enrolment; the TPM is not asked; the agent's word closes the window."""
    tpm = SoftwareTpm(tmp_path / "tpm", in_a_machine=True)
    await tpm.start()
    try:
        agent = BootedAgent(package, "--allow-actions --kernel-log journal", tpm.authorities())
        async with booted_world(tmp_path, image=DEBIAN, agent=agent) as world:
            world.guest.tpm = tpm.control
            await register(world)
            await world.until(lambda seen: seen["node"]["phase"] == "onboard", "/v1/nodes/n1", BOOT_S)
            told = [row["text"] for row in world.command("node", "history", "n1")["items"]]
            begins = [begin for begin in HISTORY if begin != "seed refused"]
            begins.insert(begins.index("phoned home"), "its agent enrolled with the key")
            steps = [next(n for n, text in enumerate(told) if text.startswith(begin)) for begin in begins]
            assert steps == sorted(steps), told
            assert any("proved by the TPM" in text for text in told)
            assert not [text for text in told if "refused" in text]
            shown = await world.until(lambda seen: seen["agent"]["heard"], "/v1/nodes/n1", BOOT_S)
            assert shown["node"]["boot"]["tpm"]
    finally:
        await tpm.end()
