"""Every command of `hostler fabric` with every option, against a cell that the installed command serves."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cyclopts import App

from hostler.cli.commands import fabric
from hostler.core.fabric.design_csv import render_csv
from hostler.core.state.live_state import Release
from tests.end_to_end.processes import HOSTLER, run
from tests.end_to_end.served import Served, served_without_agent
from tests.fabrics import a_fabric, printed, swap_at_host

PATIENCE_S = 120.0
COMMON = frozenset(
    [
        "--server",
        "--token-file",
        "--ca",
        "--context",
        "--output",
        "-o",
        "--reason",
        "--dry-run",
        "--key",
        "--wait",
        "--wait-s",
        "--insecure-plain-http",
    ]
)
"""Options of every command, tried with each in tests of the command line."""

SHOWN = frozenset(["--sort-by", "--columns", "--all-cells", "--watch", "-w"])


class Tried:
    """Says commands to the cell, and remembers which options were given to which."""

    def __init__(self, world: Served) -> None:
        self.world = world
        self.given: dict[str, set[str]] = {}

    async def __call__(self, *words: str, code: int = 0) -> str:
        name = next(n for n in (3, 2) if " ".join(words[1:n]) in COMMANDS) if len(words) > 2 else 2
        self.given.setdefault(" ".join(words[1:name]), set()).update(w for w in words if w.startswith("-"))
        ended, said = await (
            run(HOSTLER, *words) if words[1] == "diff" and "--fabric" not in words else self.world.tell(*words)
        )
        assert ended == code, (words, said)
        return said


def commands(app: App, above: str = "") -> Iterator[tuple[str, frozenset[str]]]:
    """Each command by its words, with its options."""
    for name in app:
        if name.startswith("-"):
            continue
        named, below = f"{above} {name}".strip(), app[name]
        if below.default_command is None:
            yield from commands(below, named)
            continue
        options = (word for one in below.assemble_argument_collection() if one.index is None for word in one.names)
        yield named, frozenset(word for word in options if word.startswith("--") and not word.startswith("--no-"))


COMMANDS = dict(commands(fabric.app))
OF_FILES = {"generate", "convert", "check", "compare"}
"""Commands that need no server; tests/unit/test_cli_fabric.py and the importers' tests try them."""


def rows(said: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(said)))


@pytest.mark.timeout(600)
@pytest.mark.nightly("every option of every command takes half a minute")
async def test_every_option_of_every_command_of_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: an option is offered and not sent; a column names a field that the server does not send."""
    cables = a_fabric(3)
    (tmp_path / "design.csv").write_text(render_csv(cables.design))
    (tmp_path / "models.yaml").write_text("x: {hcas: {NIC1: mlx5_0}}\n")
    (tmp_path / "plain.csv").write_text(render_csv(cables.design).replace("4xHDR", ""))
    swap_at_host(cables)
    (tmp_path / "found.txt").write_text(printed(cables))
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "ibnetdiscover").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\ncat {tmp_path}/found.txt\n')
    (tools / "ibnetdiscover").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    async with served_without_agent(tmp_path, "k1", {}, (), PATIENCE_S) as (world, _):
        await world.until(f"hostler_format {float(Release().reads)}", "/metrics")
        say = Tried(world)
        await registered(say, tmp_path)
        await world.until('"verdict":"differs"', "/v1/fabrics/ib0")
        assert "-C mlx5_0 -P 1" in (tmp_path / "asked").read_text()
        (tmp_path / "pairs.csv").write_text("a,z,gbps\ngpu-0001:mlx5_0,gpu-0002:mlx5_0,371.2\n")
        assert await say("fabric", "enter-pairs", "ib0", str(tmp_path / "pairs.csv"), "--age", "60")
        await listed(say)
        await by_hand(say, tmp_path)
        design = str(tmp_path / "design.csv")
        again = await say("fabric", "diff", design, design, "--models", str(tmp_path / "models.yaml"), "-o", "csv")
        assert rows(again) == []
        await versions(say, tmp_path)
        await say("fabric", "remove", "ib0", "--reason", "over")
        assert (await say("fabric", "show", "ib0", code=4)).count("ib0")
    missing = {
        name: left
        for name, options in COMMANDS.items()
        if name not in OF_FILES and (left := options - say.given.get(name, set()) - COMMON - SHOWN)
    }
    assert not {name: left for name, left in missing.items() if left - {"--help"}}, missing


async def registered(say: Tried, folder: Path) -> None:
    design, models = str(folder / "design.csv"), str(folder / "models.yaml")
    why = ("--reason", "the training network")
    tool = ("--adapter", "mlx5_0", "--port", "1", "--tool", "ibnetdiscover", "--timeout", "60", "--every", "3600")
    (folder / "subnet.yaml").write_text('subnet_manager: {guids: ["0x946dae0300000001"], min_standby: 0}\n')
    subnet = ("--subnet", str(folder / "subnet.yaml"))
    await say("fabric", "register", "ib0", design, "--models", models, *subnet, *tool, *why)
    shown = json.loads(await say("fabric", "show", "ib0", "-o", "json"))
    source = shown["source"]
    assert (source["adapter"], source["port"], source["timeout_s"], shown["period_s"]) == ("mlx5_0", 1, 60, 3600)
    assert shown["subnet"]["design"]["subnet_manager"] == {"guids": ["946dae0300000001"], "min_standby": 0}
    nodes = ("--tool", "iblinkinfo", "--node", "n1", "--node", "n2", "--routes", "adaptive")
    await say("fabric", "register", "ib1", design, *nodes, *why)
    source = json.loads(await say("fabric", "show", "ib1", "-o", "json"))["source"]
    assert (source["nodes"], source["routes"]) == (["n1", "n2"], "adaptive")
    (folder / "ca.pem").write_text("a PEM\n")
    ufm = (
        "--tool",
        "ufm",
        "--url",
        "https://ufm.example",
        "--secret",
        "folder:ufm",
        "--ufm-ca",
        str(folder / "ca.pem"),
    )
    await say("fabric", "register", "ib2", design, *ufm, *why)
    found = json.loads(await say("fabric", "show", "ib2", "-o", "json"))["source"]
    assert (found["url"], found["secret"], found["ca"]) == ("https://ufm.example", "folder:ufm", "a PEM\n")
    for name in ("ib1", "ib2"):
        await say("fabric", "remove", name, *why)
    await say("fabric", "register", "ib0", design, "--tool", "nobody", *why, code=2)


async def listed(say: Tried) -> None:
    """Lists as table, JSON and CSV: each field that a column names is there."""
    for words in (("list",), *((name, "ib0") for name in ("findings", "links", "faults", "counters"))):
        assert await say("fabric", *words)
        as_json = json.loads(await say("fabric", *words, "-o", "json"))
        items: list[Any] = as_json["items"] if isinstance(as_json, dict) else as_json
        as_csv = rows(await say("fabric", *words, "-o", "csv"))
        assert len(items) == len(as_csv), words
    (finding,) = rows(await say("fabric", "findings", "ib0", "-o", "csv"))
    assert (finding["kind"], bool(finding["ticket"])) == ("swapped", True)
    assert len(rows(await say("fabric", "links", "ib0", "--found", "elsewhere", "-o", "csv"))) == 2
    of_leaf = rows(await say("fabric", "links", "ib0", "--device", "leaf-001-1", "-o", "csv"))
    assert {row["a"].partition(":")[0] for row in of_leaf} == {"leaf-001-1"}
    assert rows(await say("fabric", "counters", "ib0", "--device", "leaf-001-1", "-o", "csv")) == []
    port = of_leaf[0]["a"].partition(":")[2]
    told = await say("fabric", "link", "show", "leaf-001-1", "--port", port, "--fabric", "ib0", "-o", "json")
    assert json.loads(told)["link"]["a"] == of_leaf[0]["a"]
    await say("fabric", "link", "show", "leaf-001-1", "--fabric", "ib0", code=2)
    await say("fabric", "link", "show", "n1")
    await say("fabric", "validate", "ib0", "--reason", "a leaf was replaced")
    await say("fabric", "walk", "ib0", "--row", "a", "--reason", "one way", code=3)
    told = await say("fabric", "walk", "ib0", "--rack", "net", "--reason", "one way")
    assert "rack net of network ib0: 1 findings on one walk; 1 of them have tickets of their own" in told


async def versions(say: Tried, folder: Path) -> None:
    """A design is planned, registered, compared and gone back from."""
    plain = str(folder / "plain.csv")
    models = ("--models", str(folder / "models.yaml"))
    planned, summary = rows(await say("fabric", "plan", "ib0", plain, *models, "-o", "csv")), "rate changes: 112; at 12"
    assert planned.pop()["change"].startswith(summary), "said beside the list, on standard error"
    assert (len(planned), planned[0]["change"], planned[0]["before"]) == (112, "rate changes", "4xHDR")
    told = await say("fabric", "register", "ib0", plain, *models, "--reason", "no rates", "--dry-run")
    assert summary in told
    await say("fabric", "register", "ib0", plain, *models, "--reason", "no rates")
    seen = rows(await say("fabric", "versions", "ib0", "-o", "csv"))
    assert [row["reason"] for row in seen] == ["the training network", "no rates"]
    changed = rows(await say("fabric", "diff", "previous", "current", "--fabric", "ib0", "-o", "csv"))
    assert changed[:-1] == planned
    await say("fabric", "roll-back", "ib0", "previous", "--reason", "they are known")
    again = rows(await say("fabric", "versions", "ib0", "-o", "csv"))
    assert (len(again), again[2]["digest"]) == (3, seen[0]["digest"])
    await say("fabric", "roll-back", "ib0", "abcdef", "--reason", "x", code=4)
    window = ("--starts", "2036-01-31T22:00:00+00:00", "--ends", "2036-02-01T04:00:00+00:00", "--reason", "trays")
    await say("fabric", "recable", "ib0", plain, *models, *window, code=3)
    starts = datetime.now(UTC) + timedelta(days=1)
    window = ("--starts", starts.isoformat(), "--ends", (starts + timedelta(hours=6)).isoformat(), "--reason", "trays")
    assert summary in await say("fabric", "recable", "ib0", plain, *models, *window)
    await say("fabric", "move-recabling", "ib0", *window)
    shown = json.loads(await say("fabric", "show", "ib0", "-o", "json"))
    assert shown["recabling"]["stage"] == "planned"
    await say("fabric", "cancel-recabling", "ib0", "--reason", "not yet")


async def by_hand(say: Tried, folder: Path) -> None:
    why = ("--reason", "week 47")
    plan = ("--owner", "tess", "--every-days", "7", "--checklist", "by rail; look at LEDs")
    await say("fabric", "schedule-manual-test", "ib0", *plan, *why)
    await say("fabric", "tick-manual-test", "ib0", "--step", "1", *why)
    await say("fabric", "tick-manual-test", "ib0", "--step", "2", "--note", "leaf-002 was not reached", *why)
    (folder / "leaf.jpg").write_bytes(b"\xff\xd8\xff\xe0 a photo")
    await say("fabric", "attach", "ib0", str(folder / "leaf.jpg"), *why)
    (folder / "results.csv").write_text("".join(f"gpu-{n:04} to gpu-0000,39{n % 10}\n" for n in range(300)))
    await say("fabric", "enter-manual-test", "ib0", str(folder / "results.csv"), "--notes", "rail 3 was warm", *why)
    await say("fabric", "sign-manual-test", "ib0", *why)
    (run,) = json.loads(await say("fabric", "show", "ib0", "-o", "json"))["manual_test"]["runs"]
    assert (len(run["results"]), run["ticks"][1]["note"]) == (300, "leaf-002 was not reached")
    to = folder / "again.jpg"
    await say("fabric", "attached", "ib0", run["files"][0]["digest"], "--to", str(to))
    assert to.read_bytes() == (folder / "leaf.jpg").read_bytes()
    await say("fabric", "attached", "ib0", run["files"][0]["digest"], "--to", str(to), code=2)
