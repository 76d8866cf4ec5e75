"""The page on Ansible and Terraform, run as it is written by the real tools against an emulated fleet."""

import asyncio
import json
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.contract.pypi_programs import MissingError, installed
from tests.end_to_end.processes import HOSTLER, free_port, process, run
from tests.how_to import FENCE, PAGES

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

PATIENCE_S = 90.0
ANSIBLE = ("ansible-core==2.19.14",)
HERE = ("-e", "ansible_connection=local", "-e", f"ansible_python_interpreter={sys.executable}")
"""The node's work is done on this machine."""
PAGE = (PAGES / "use-ansible-and-terraform.md").read_text(encoding="utf-8")


def file_of_the_page(name: str, folder: Path) -> Path:
    """The block of the page that begins with this name, as a file."""
    (text,) = [text for _, _, text in FENCE.findall(PAGE) if text.startswith(f"# {name}\n")]
    (folder / name).write_text(text)
    return folder / name


class Fleet:
    """A fleet of eight nodes, most of which serve, and the environment of whoever works beside it."""

    def __init__(self, folder: Path, server: str, token: str) -> None:
        self.server = server
        self.environment = (
            "env",
            "-C",
            str(folder),
            *_at_home(folder),
            f"HOSTLER_SERVER={server}",
            f"HOSTLER_TOKEN={token}",
        )

    async def tell(self, *words: str) -> str:
        code, said = await run(*self.environment, HOSTLER, *words)
        assert code == 0, said
        return said

    async def intents(self, node: str) -> Counter[str]:
        """Intents on the node that were recorded, by verb."""
        told = json.loads(await self.tell("node", "history", node, "--limit", "0", "-o", "json"))["items"]
        return Counter(one["event"]["intent"]["act"]["verb"] for one in told if one["name"] == "intent_recorded")

    async def play(self, *words: str) -> tuple[int, str]:
        return await run(*self.environment, *words)


def _at_home(folder: Path) -> Sequence[str]:
    return (
        f"HOME={folder}", f"XDG_CONFIG_HOME={folder}", "LC_ALL=C.UTF-8", f"ANSIBLE_HOME={folder}/ansible",
        f"PATH={Path(HOSTLER).parent}:{os.environ['PATH']}", "CHECKPOINT_DISABLE=1",
        f"TF_CLI_CONFIG_FILE={folder}/tfrc",
    )  # fmt: skip


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    async with _fleet(tmp_path) as running:
        yield running


@asynccontextmanager
async def _fleet(folder: Path) -> AsyncIterator[Fleet]:
    log, port = folder / "log", free_port()
    (folder / "tfrc").touch()
    start = ("up", "--port", str(port), "--nodes", "8", "--adopted", "--faults-per-hour", "0")
    async with process("env", *_at_home(folder), HOSTLER, *start, log=log) as up:
        async with asyncio.timeout(PATIENCE_S):
            while "Stop with Ctrl-C." not in log.read_text():
                assert up.returncode is None, log.read_text()
                await asyncio.sleep(0.2)
        (token,) = re.findall(r"#token=(\S+)", log.read_text())
        yield Fleet(folder, f"http://127.0.0.1:{port}", token)


async def test_a_play_drains_a_node_works_on_it_and_gives_it_back_once(fleet: Fleet, tmp_path: Path) -> None:
    """Mutants: the play works while a customer does; it goes on after a refusal; a second run asks for another drain; a
    node whose work failed is given back; a field of the API's answers that has another name by now.
    """
    try:
        play = installed("ansible-core-2.19.14", ANSIBLE) / "ansible-playbook"
    except MissingError as missing:
        pytest.skip(str(missing))
    steps = file_of_the_page("maintain.yaml", tmp_path)
    node = (await fleet.tell("node", "list", "-l", "pool=serve", "-o", "name")).split()[0]

    async def played(change: str, work: str) -> tuple[int, str]:
        (tmp_path / "nodes.ini").write_text(f"{node}\n")
        words = ("-i", f"{tmp_path}/nodes.ini", *HERE, "-e", f"change={change}", "-e", f"work='{work}'")
        return await fleet.play(str(play), *words, str(steps))

    code, said = await played("CHG-1", f"cp {tmp_path}/log {tmp_path}/worked")
    assert code == 0, said
    assert (tmp_path / "worked").exists()
    assert (asked := await fleet.intents(node)) == {"drain": 1, "uncordon": 1}
    code, said = await played("CHG-1", "true")
    assert (code, await fleet.intents(node)) == (0, asked), said
    code, said = await played("CHG-2", "false")
    assert code != 0, said
    assert await fleet.intents(node) == {"drain": 2, "uncordon": 1}
    assert node in await fleet.tell("hold", "list")
    node = (await fleet.tell("node", "list", "-l", "phase!=production", "-o", "name")).split()[0]
    code, said = await played("CHG-3", f"cp {tmp_path}/log {tmp_path}/never")
    assert (code != 0, (tmp_path / "never").exists()) == (True, False), said
    assert "drain is for nodes in production" in said


async def test_terraform_registers_each_machine_once(fleet: Fleet, tmp_path: Path) -> None:
    """Mutants: a refusal is no failure; another machine of the list registers all of them anew; the token is shown."""
    if (terraform := shutil.which("terraform")) is None:
        pytest.skip("no terraform: developer.hashicorp.com/terraform/install, one program in the PATH")
    plan = file_of_the_page("machines.tf", tmp_path)

    async def applied(*more: str) -> tuple[int, str]:
        words = ("apply", "-auto-approve", "-no-color", "-var", f"hostler={fleet.server}")
        return await fleet.play(*more, terraform, *words)

    code, said = await fleet.play(terraform, "init", "-no-color")
    assert code == 0, said
    code, said = await applied("env", "HOSTLER_TOKEN=hst_nobody")
    assert (code, "401" in said) == (1, True), said
    code, said = await applied()
    assert (code, "2 added" in said) == (0, True), said
    assert "hst_" not in said
    plan.write_text(
        plan.read_text().replace("  ]\n", '    { serial = "SN-7003", sku = "h100-8", rack = "r7" },\n  ]\n', 1)
    )
    code, said = await applied()
    assert (code, "1 added, 0 changed, 0 destroyed" in said) == (0, True), said
    rows = json.loads(await fleet.tell("node", "list", "-l", "rack=r7", "-o", "json"))["items"]
    assert sorted(row["serial"] for row in rows) == ["SN-7001", "SN-7002", "SN-7003"]
    plan.write_text(plan.read_text().replace('"SN-7003", sku = "h100-8"', '"SN-7004", sku = "h999"', 1))
    code, said = await applied()
    assert (code, "h999" in said) == (1, True), said
