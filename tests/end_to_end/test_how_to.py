"""Commands of the how-to pages that need nothing from outside, run as they are written against an emulated fleet."""

import asyncio
import json
import re
from pathlib import Path

import pytest
import yaml

from tests.end_to_end.processes import HOSTLER, free_port, process, run
from tests.how_to import RUN, blocks, commands, filled, is_run

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

PATIENCE_S = 90.0
ACTIVATES = ("policy", "activate", "policy.yaml", "pools.yaml", "routes.yaml", "--reason", "the page's routes")
ENDLESS = ("-w", "--watch")
"""Options with which a command goes on until it is ended: they are left out."""
FILE = re.compile(r"\$ cat (\S+)\n((?:(?!\$).*\n)+)")


async def test_what_a_page_says_to_type_does_what_it_says(tmp_path: Path) -> None:
    """Run the commands; all end well. Mutants: a command needs an option that its page leaves out; the
    fleet has nothing that the page could be about.
    """
    log, wrong, told = tmp_path / "log", list[str](), ""
    environment = ("env", "-C", str(tmp_path), f"HOME={tmp_path}", f"XDG_CONFIG_HOME={tmp_path}", "LC_ALL=C.UTF-8")
    start = ("up", "--port", str(free_port()), "--nodes", "40", "--adopted", "--faults-per-hour", "0")
    async with process(*environment, HOSTLER, *start, log=log) as up:
        async with asyncio.timeout(PATIENCE_S):
            while "Stop with Ctrl-C." not in log.read_text():
                assert up.returncode is None, log.read_text()
                await asyncio.sleep(0.2)
            said = ""
            while "format_raised" not in said:  # until the cell's controllers are known, some records are refused
                await asyncio.sleep(0.5)
                _, said = await run(*environment, HOSTLER, "events", "--name", "format_raised")
        _, said = await run(
            *environment, HOSTLER, "events", "--name", "config_activated", "--limit", "1", "-o", "jsonl"
        )
        active = json.loads(said.splitlines()[-1])["event"]["documents"]
        (tmp_path / "policy.yaml").write_text(active["policy.yaml"])
        (tmp_path / "pools.yaml").write_text(active["fleet.yaml"])
        for page in RUN:
            if lay_out(page, tmp_path):
                code, said = await run(*environment, HOSTLER, *ACTIVATES)
                assert code == 0, (page, said)
            for command in commands(page):
                if not is_run(page, command):
                    continue
                words, to = filled(command.words, told), command.text.partition(" > ")[2].strip()
                if set(words) & set(ENDLESS):
                    words = [word for word in words if word not in ENDLESS]
                code, said = await run(*environment, HOSTLER, *words)
                told += said
                if to and not (tmp_path / Path(to).name).is_dir():
                    (tmp_path / Path(to).name).write_text(said)
                if code:
                    wrong.append(f"{page}: {command.text}: {code}: {said[-300:]}")
    assert not wrong, "\n".join(wrong)


def lay_out(page: str, folder: Path) -> bool:
    """Files that the page shows by `cat`, its machines, assets and budgets; whether it has routes."""
    routed = False
    for block in blocks(page):
        for name, text in FILE.findall(block.text):
            (folder / name).write_text(text)
        if block.language == "csv":
            (folder / "rack7.csv").write_text(block.text)
        if block.language == "json" and '"kind"' in block.text:
            (folder / "assets.json").write_text(block.text)
        if block.language == "yaml" and block.text.startswith("policy:\n  sources:"):
            whole = yaml.safe_load((folder / "policy.yaml").read_text())
            whole["policy"] |= yaml.safe_load(block.text)["policy"]
            (folder / "policy.yaml").write_text(yaml.safe_dump(whole, sort_keys=False))
        if block.language == "yaml" and block.text.startswith("routes:"):
            before = (folder / "routes.yaml").read_text() if routed else ""
            text = block.text.replace("tenant: acme", "tenant: tenant-a")
            (folder / "routes.yaml").write_text(before + (text.removeprefix("routes:\n") if routed else text))
            routed = True
    return routed
