"""Day 0 with Debian's own cloud-init: power-on, image, NoCloud over HTTP, phone-home, Onboard (`make test-boot`)."""

from pathlib import Path

import pytest

from tests.boot_guest import missing
from tests.debian_guest import missing_for_debian
from tests.end_to_end.booted import DEBIAN, booted_world
from tests.end_to_end.test_boot import HISTORY, register

pytestmark = pytest.mark.skipif(
    bool(missing() or missing_for_debian()), reason=missing() or missing_for_debian() or "it boots"
)


@pytest.mark.timeout(900)
async def test_debian_s_cloud_init_brings_a_machine_to_onboard(tmp_path: Path) -> None:
    """Mutants: the seed's address is no NoCloud source; cloud-init finds its user-data no cloud-config."""
    async with booted_world(tmp_path, image=DEBIAN) as world:
        await register(world)
        await world.until(lambda seen: seen["node"]["phase"] == "onboard", "/v1/nodes/n1", 600)
        told = [row["text"] for row in world.command("node", "history", "n1")["items"]]
        begins = [begin for begin in HISTORY if begin != "seed refused"]
        steps = [next(n for n, text in enumerate(told) if text.startswith(begin)) for begin in begins]
        assert steps == sorted(steps), told
        console = world.guest.console()
        assert "Cloud-init v." in console
        assert "DataSourceNoCloudNet" in console or "Datasource" in console, console[-2000:]
