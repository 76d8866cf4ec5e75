"""The Python client's page, run as it is written against a real `hostler serve`; its paths beside the description."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import msgspec

from hostler.client import Address, Client, routes
from hostler.client.answers import LISTS
from tests.end_to_end.served import served_without_agent

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0


def installed(folder: Path) -> Path:
    """A Python whose environment has the built wheel and msgspec, and nothing else. Returns its program."""
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    subprocess.run(build, check=True, cwd=ROOT, capture_output=True, timeout=120)
    venv.create(folder / "env", with_pip=False)
    (library,) = (folder / "env/lib").glob("python3*/site-packages")
    (wheel,) = folder.glob("hostler-*.whl")
    zipfile.ZipFile(wheel).extractall(library)
    shutil.copytree(Path(msgspec.__file__).parent, library / "msgspec")
    return folder / "env/bin/python"


async def test_the_examples_run_as_they_are_written_and_every_path_is_described(tmp_path: Path) -> None:
    """Mutants: a route is renamed and the client's constant is not; a type of `answers` no longer fits its list; the
    client needs a package beside msgspec, or a file that the wheel leaves out.
    """
    python = await asyncio.to_thread(installed, tmp_path / "wheel")
    page = (ROOT / "docs/how-to/use-the-python-client.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    async with served_without_agent(tmp_path, '""', {}, (), PATIENCE_S) as (world, words):
        server, token = words[words.index("--server") + 1], (tmp_path / "operator").read_text()
        with Client([Address.parse(server)], token) as client:
            for kind in LISTS:
                await asyncio.to_thread(list, client.list(kind))
        described = set(json.loads(await world.read("/schema/openapi.json"))["paths"])
        program = await asyncio.create_subprocess_exec(
            str(python), "-I", "-c", code, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "HOSTLER_SERVER": server, "HOSTLER_TOKEN": token},
        )  # fmt: skip
        said, wrong = await program.communicate()
    assert wrong == b""
    lines = said.decode().splitlines()
    assert "True done" in lines, lines
    assert any(line.startswith("{'verb': 'cordon', 'hours': 4.0} done ") for line in lines), lines
    assert any(line.startswith("404 node no-such-node") for line in lines), lines
    named = {value for name, value in vars(routes).items() if name.isupper()}
    assert named - described == set()
    assert set(LISTS.values()) <= named
