"""Commands of the how-to pages that need nothing from outside, run as they are written against an emulated fleet."""

import asyncio
import re
from pathlib import Path

from tests.end_to_end.processes import HOSTLER, free_port, process, run
from tests.how_to import RUN, blocks, commands, filled, is_run

PATIENCE_S = 90.0
ENDLESS = ("-w", "--watch")
"""Options with which a command goes on until it is ended: they are left out."""
FILE = re.compile(r"\$ cat (\S+)\n((?:(?!\$).*\n)+)")


async def test_what_a_page_says_to_type_does_what_it_says(tmp_path: Path) -> None:
    """Run the commands; all end well. Mutants: a command needs an option that its page leaves out; the
    fleet has nothing that the page could be about.
    """
    log, wrong = tmp_path / "log", list[str]()
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
        for page in RUN:
            lay_out(page, tmp_path)
            for command in commands(page):
                if not is_run(page, command):
                    continue
                words, to = filled(command.words), command.text.partition(" > ")[2].strip()
                if set(words) & set(ENDLESS):
                    words = [word for word in words if word not in ENDLESS]
                code, said = await run(*environment, HOSTLER, *words)
                if to and not (tmp_path / Path(to).name).is_dir():
                    (tmp_path / Path(to).name).write_text(said)
                if code:
                    wrong.append(f"{page}: {command.text}: {code}: {said[-300:]}")
    assert not wrong, "\n".join(wrong)


def lay_out(page: str, folder: Path) -> None:
    """Files that the page shows by `cat`, and its document of assets."""
    for block in blocks(page):
        for name, text in FILE.findall(block.text):
            (folder / name).write_text(text)
        if block.language == "json" and '"kind"' in block.text:
            (folder / "assets.json").write_text(block.text)
