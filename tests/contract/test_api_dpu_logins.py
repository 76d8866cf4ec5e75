"""Logins of DPUs' BMCs by the API and the command line: each has a line, which says what it waits for."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hostler.core.state import events as e
from hostler.core.state.operations import RenewDpuLogin
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House, house
from tests.contract.test_api_audit import cli, tried

A, B = "https://10.30.7.21", "https://10.30.7.22"
NODE = {"id": "n9", "sku": "h100", "hostname": "h9", "serial": "SN-9", "site": "s1", "dpu_bmcs": [A, B]}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        await inside.reads_all()
        assert (await inside.operator.post("/v1/nodes", {"nodes": [NODE], "reason": "new"}))[0] == 200
        yield inside


async def rows(world: House) -> list[dict[str, Any]]:
    return [one for one in (await world.operator.get("/v1/bmc/credentials"))["items"] if one["node"] == "n9"]


async def test_each_has_a_line_and_a_person_has_one_renewed(world: House) -> None:
    """Mutants: two BMCs of one node are one line; a node that was not heard looks as if nothing were to do."""
    world.driver.stuck.add("renew_dpu_login")
    found = await rows(world)
    assert [(one["kind"], one["bmc"], one["state"]) for one in found] == [("dpu", A, "none"), ("dpu", B, "none")]
    assert all("agent shows no DPU with a serial number" in one["says"] for one in found)
    ask = ("bmc", "credentials", "rotate", "n9", "--dpu", B, "--reason", "she left")
    code, said = await tried(world, *ask)
    assert (code, "its agent shows no DPU with a serial number" in said) == (3, True), said
    world.driver.heard("n9", "b1")
    await world.report("n9", kind="inventory", boot_id="b1", facts={"covers": "", "dpu.n0": "MT1", "dpu.n1": "MT2"})
    await world.until(lambda: world.cell.view.nodes["n9"].hardware_own)
    assert [one["says"] for one in await rows(world)] == ["", ""]
    await cli(world, "hold", "place", "n9", "--reason", "hands in it")
    assert f"n9's DPU's BMC {B} is to be renewed" in await cli(world, *ask)
    (first, second) = await rows(world)
    assert (first["state"], second["state"], "holds n9" in second["says"]) == ("none", "due", True), second
    assert "she left" in await cli(world, "node", "history", "n9")
    told = await cli(world, "bmc", "credentials", "status")
    assert all(one in told for one in (A, B, "dpu"))


async def test_only_who_runs_the_whole_cell_says_who_a_dpu_s_bmc_is(world: House) -> None:
    """Mutant: an operator of one pool has the password sent to whoever shows a certificate."""
    world.driver.stuck.add("renew_dpu_login")
    world.driver.heard("n9", "b1")
    await world.report("n9", kind="inventory", boot_id="b1", facts={"covers": "", "dpu.n0": "MT1"})
    await world.until(lambda: world.cell.view.nodes["n9"].hardware_own)
    asked = {"reason": "looked", "act": {"dpu": A, "certificate": "ab" * 32}}
    bound = world.client(Grant("eve", Role.operator, site="s1"))
    status, answer = await bound.post("/v1/nodes/n9/renew-login", asked)
    assert (status >= 400, "only an operator of the whole cell" in str(answer)) == (True, True), answer
    assert (await world.operator.post("/v1/nodes/n9/renew-login", asked))[0] == 200
    records = [r.event for r in world.cell.journal.records()]
    await world.until(lambda: world.cell.view.nodes["n9"].aside is not None)
    operation = world.cell.view.nodes["n9"].aside
    assert operation is not None
    assert operation.act == RenewDpuLogin(A, ("MT1",), "ab" * 32)
    assert [one.certificate for one in records if isinstance(one, e.DpuLoginDue)] == ["ab" * 32]
    (row, _) = await rows(world)
    assert row["state"] == "renewing"
