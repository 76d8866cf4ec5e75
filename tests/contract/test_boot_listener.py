"""The boot listener's answers to the machine that is expected, and to all others."""

from pathlib import Path

import pytest

from hostler.core.boot.secrets import DOOR, SEED, secret_of
from hostler.core.state.model import Phase
from hostler.core.state.verbs.rma_cases import EditRma, OpenRma
from tests.contract.boot_world import INITRD, KERNEL, KEY, boot_world

OTHER = "52:54:00:00:00:99"


async def test_a_boot_from_power_on_to_onboard(tmp_path: Path) -> None:
    """Mutants: a boot is answered twice; user-data are given twice; a phone-home does not end the wait."""
    async with boot_world(tmp_path) as world:
        await world.register()
        status, first = await world.get(
            world.endpoint().replace("/script", "/boot.efi"), **{"User-Agent": "iPXE/1.21.1"}
        )
        assert status == 200
        assert "chain" in first
        status, script = await world.script()
        assert "kernel " in script
        seed = next(w for w in script.split() if w.startswith("ds=nocloud-net;s=")).rpartition(";s=")[2]
        seed = seed.removeprefix(world.url)
        assert (await world.get(f"{seed}meta-data"))[1].count("region: north") == 1
        assert "macaddress: '52:54:00:00:00:01'" in (await world.get(f"{seed}network-config"))[1]
        status, user = await world.get(f"{seed}user-data")
        assert (status, user.splitlines()[0]) == (200, "#cloud-config")
        assert "timezone: Etc/UTC" in user
        assert (await world.get(f"{seed}user-data"))[0] == 403
        assert "has been answered already" in (await world.script())[1]
        assert await world.post(seed.replace("/ci/", "/home")) == 200
        await world.until(lambda node: node.phase is Phase.onboard)
        assert (await world.get(f"{seed}meta-data"))[0] == 403
        assert await world.post(seed.replace("/ci/", "/home")) == 403
        kinds = [str(type(r.event).__struct_config__.tag) for r in world.cell.journal.records()]
        told = [kind for kind in kinds if kind.startswith("boot_")]
        assert told[:5] == ["boot_answered", "boot_seeded", "boot_refused", "boot_refused", "boot_phoned_home"]
        assert b"abcdef.0123456789" not in b"".join(repr(r).encode() for r in world.cell.journal.records())


@pytest.mark.parametrize("shown", [{"mac": OTHER}, {"serial": "SN-n2"}], ids=["mac", "serial"])
async def test_a_machine_that_is_not_the_expected_one_gets_nothing(tmp_path: Path, shown: dict[str, str]) -> None:
    """Mutant: the secret alone opens the boot."""
    async with boot_world(tmp_path, mac_only="true") as world:
        await world.register()
        status, script = await world.script(**shown)
        assert (status, "kernel" in script) == (200, False)
        assert "sleep" in script
        assert [event.node for event in world.told("boot_refused")] == ["n1"]


async def test_strangers_are_recorded_once_and_booted_into_nothing(tmp_path: Path) -> None:
    """Mutants: every request of a stranger is recorded; a stranger is booted where MAC addresses are enough."""
    async with boot_world(tmp_path, mac_only="true") as world:
        await world.register()
        for _ in range(3):
            _, script = await world.script("/ipxe", mac=OTHER, serial="SN-x")
            assert "kernel" not in script
        assert [(one.mac, one.serial) for one in world.cell.view.cell.strangers] == [(OTHER, "SN-x")]
        assert len(world.told("stranger_seen")) == 1


async def test_a_secret_of_another_boot_opens_nothing(tmp_path: Path) -> None:
    """Mutants: secrets of an earlier plan open; a node's secret opens for another node."""
    async with boot_world(tmp_path) as world:
        node = await world.register()
        assert node.plan is not None
        old = secret_of(KEY, "n1", f"{node.plan.id}0", DOOR)
        _, script = await world.script(f"/n/n1/{old}/script")
        assert "kernel" not in script
        await world.script()
        for wrong in (secret_of(KEY, "n1", node.plan.id, DOOR), secret_of(KEY, "n2", node.plan.id, SEED)):
            assert (await world.get(f"/n/n1/{wrong}/ci/user-data"))[0] == 403
        assert (await world.get(f"/n/nobody/{old}/ci/user-data"))[0] == 404


async def test_a_bmc_without_http_boot_is_labelled_where_that_is_allowed(tmp_path: Path) -> None:
    """Mutants: MAC addresses are enough everywhere; the secret is told in the refusal."""
    async with boot_world(tmp_path, mac_only="true") as world:
        world.driver.has_http = False
        await world.register()
        assert world.driver.given["n1"] == ""
        _, script = await world.script("/ipxe")
        assert "kernel" in script
        assert world.booted.identity == "mac"
        said = [event.detail for event in world.told("operation_finished")]
        assert any("known by its MAC address alone" in text for text in said)
        secret = secret_of(KEY, "n1", world.plan, DOOR)
        assert not any(secret in repr(record) for record in world.cell.journal.records())


async def test_a_machine_that_is_on_is_left_no_address_for_some_later_boot(tmp_path: Path) -> None:
    """Mutant: each power-on sets the boot, and a node that restarts by itself months later asks with an old secret."""
    async with boot_world(tmp_path) as world:
        world.driver.on = True
        await world.register()
        assert (
            world.driver.sets == 1
        )  # set_boot_network itself does what it says; the power-on that found it on does not


async def test_where_mac_addresses_are_not_enough_the_machine_is_held_with_the_reason(tmp_path: Path) -> None:
    async with boot_world(tmp_path) as world:
        await world.register()
        _, script = await world.script("/ipxe")
        assert "MAC address alone" in script
        assert "kernel" not in script
        assert "reboot" not in script
        before = len(list(world.cell.journal.records()))
        await world.script("/ipxe")
        assert len(list(world.cell.journal.records())) == before  # the same hold is recorded once
        assert "kernel" in (await world.script())[1]  # and keeps the right machine from nothing


async def test_user_data_carry_a_token_that_was_minted_for_them(tmp_path: Path) -> None:
    """Mutants: it is minted for every request; user-data go out without it; a failed mint uses the boot up."""
    async with boot_world(tmp_path, cluster="mgmt") as world:
        node = await world.register()
        seed = await world.seed()
        assert (await world.get(f"{seed}meta-data"))[0] == 200
        assert world.driver.minted == []
        world.driver.mints = False
        assert (await world.get(f"{seed}user-data"))[0] == 503
        world.driver.mints = True
        status, user = await world.get(f"{seed}user-data")
        assert status == 200
        assert "abcdef.0123456789abcdef" in user
        assert node.plan is not None
        assert world.driver.minted == [node.plan.id] * 2
        assert (await world.get(f"{seed}user-data"))[0] == 403
        assert not any("0123456789abcdef" in repr(record) for record in world.cell.journal.records())


async def test_files_are_served_in_ranges_and_only_as_their_checksums_say(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Mutants: a file that was changed is served; a path leads out of the folder; a range ends its connection."""
    async with boot_world(tmp_path) as world:
        await world.register()
        await world.script("/ipxe")
        async with world.session.get(f"{world.url}/images/vmlinuz", headers={"Range": "bytes=3-8"}) as part:
            assert (part.status, await part.read()) == (206, KERNEL[3:9])
            etag = part.headers["ETag"]
        assert [one.getMessage() for one in caplog.records if one.name == "aiohttp.server"] == []
        assert (await world.get("/images/vmlinuz", **{"If-None-Match": etag}))[0] == 304
        assert (await world.get("/images/initrd"))[1].encode() == INITRD
        assert (await world.get("/images/..%2f..%2fetc%2fpasswd"))[0] == 404
        (tmp_path / "images/new").write_bytes(b"x" * len(KERNEL))
        (tmp_path / "images/new").rename(tmp_path / "images/vmlinuz")
        assert (await world.get("/images/vmlinuz"))[0] == 404
        _, script = await world.script()
        assert "is not what its sha256 says" in script


async def test_an_adapter_that_a_return_lists_boots_its_node(tmp_path: Path) -> None:
    """Mutants: the address is refused where the secret is right; it is taken with the secret of another boot."""
    async with boot_world(tmp_path) as world:
        await world.register()
        _, refused = await world.script(mac=OTHER)
        assert "kernel" not in refused
        await world.ask(OpenRma(), "n1")
        (case,) = world.cell.view.rma_cases.values()
        await world.ask(EditRma(mac=OTHER), case.id)
        other = secret_of(KEY, "n1", "n1-p0", DOOR)
        _, refused = await world.script(f"/n/n1/{other}/script", mac=OTHER)
        assert "kernel" not in refused
        _, script = await world.script(mac=OTHER)
        assert "kernel " in script
        macs = [b.value for b in world.cell.view.nodes["n1"].bindings if b.kind == "mac" and b.until is None]
        assert OTHER in macs
