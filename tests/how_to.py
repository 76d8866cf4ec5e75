"""Commands and documents of the how-to pages, README and quick start, and what is done with each when tests run."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs/how-to"
FIRST = {"README": ROOT / "README.md", "quick-start": ROOT / "docs/quick-start.md"}
"""Pages that are read before those."""
NAMES = (*FIRST, *sorted(page.stem for page in PAGES.glob("*.md")))
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
HEREDOC = re.compile(r"^cat > \S+ <<'?(\w+)'?\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
TOLD = {
    re.compile(r"^[0-9a-f]{4}…$"): re.compile(r"^digest ([0-9a-f]{64})$", re.MULTILINE),
    re.compile(r"^rma-c1-n0007-5120$"): re.compile(r"(rma-c1-n0007-\d+)"),
    re.compile(r"^4f1f0c9d2b77$"): re.compile(r"^([0-9a-f]{12})  \d{4}-", re.MULTILINE),
}
"""Words of a page that its readers have from what a command said before, and where it says them: digests, an id."""
SHELL = ("", "sh", "console")
OWN = ("hostler", "hostler-agent", "hostler-check")
PROGRAM = re.compile(r"(?:^|[\s/=])(hostler(?:-agent|-check)?)(?=\s|$)")

ELSEWHERE = {
    "train-your-own-model": "its commands and documents are run by checks/test_own_module.py",
    "use-the-python-client": "its programs are run by end_to_end/test_python_client.py",
    "write-a-check": "its documents are read by checks/test_profiles.py",
    "use-the-console": "it has no command; the console is driven by end_to_end/test_console*.py",
    "try-what-is-found": "it has no command",
    "use-ansible-and-terraform": "its files and commands are run by end_to_end/test_ansible_and_terraform.py",
}
"""Pages without a block for this harness, and who tries them."""

NEEDS = {
    "ansible-playbook": "Ansible",
    "apt-get": "Debian and root",
    "cat": "files of the page",
    "cp": "files of a network",
    "curl": "a service",
    "duckdb": "DuckDB's shell",
    "echo": "root",
    "editor": "a person",
    "export": "nothing, a variable",
    "gnmic": "a switch",
    "helm": "Helm and a cluster",
    "install": "root",
    "journalctl": "systemd",
    "kubectl": "a cluster",
    "make": "targets of the tree",
    "pip": "a package index",
    "python3": "a package index",
    "sbatch": "Slurm",
    "scontrol": "Slurm",
    "sha256sum": "a file made before",
    "sinfo": "Slurm",
    "systemctl": "systemd",
    "terraform": "Terraform",
    "umask": "nothing, a mask",
    "/opt/hostler/bin/python": "an installed agent",
    "/opt/hostler-checks/bin/pip": "a package index",
}
"""Programs of others that pages call, and what they need."""

RUN = {
    "README": ("status", "node"),
    "admit-nodes": ("admission plan --file", "admission apply"),
    "audit-requests": ("audit list", "audit export"),
    "get-told": ("notify list", "notify dead", "notify test", "notify deliveries"),
    "nodes-of-a-provider": ("provider list",),
    "return-to-the-vendor": (
        "rma list", "rma open", "rma show", "rma edit", "rma advance rma-c1-n0007-5120 --step approved",
        "rma advance rma-c1-n0007-5120 --step received --reason", "stock",
    ),
    "run-a-drill": ("drill c1-n0035", "drill show", "drill list"),
    "sanitise-a-node": ("node certificates",),
    "see-it-coming": ("trend list", "trend shifts", "trend scorecard", "trend lemons"),
    "send-evidence": ("node evidence", "node bundles"),
    "boot-a-node": ("node history", "node get", "node cloud-init", "boot strangers"),
    "bring-up-a-rack": ("asset register", "asset list", "rack list", "rack get"),
    "connect-a-slurm-cluster": ("node get", "node drain", "node rebind"),
    "connect-a-ticket-system": ("policy", "notify test", "notify deliveries", "notify dead"),
    "bmc-credentials": ("bmc credentials status", "bmc certificates status"),
    "inspect-a-node": ("node checklist",),
    "install-the-agent": ("node describe",),
    "quick-start": ("status", "pool", "node", "pause", "resume"),
    "use-the-command-line": ("node", "events", "statement", "context list", "completion", "job list", "part"),
    "validate-a-fabric": ("fabric generate", "fabric check", "fabric list"),
    "work-at-the-racks": ("ticket list",),
    "budget-noisy-sources": (
        "node conditions", "node explain", "boot strangers", "audit list", "node history", "events", "policy",
    ),
}  # fmt: skip
"""Commands, by how they begin, that are run against an emulated fleet as a page writes them."""

STANDS_FOR = {
    "NODE": "c1-n0030", "n1": "c1-n0030", "TICKET": "t1", "NUMBER": "1", "SERIAL": "S1", "DIGEST": "d1",
    "1650123456789": "EMU00007-GPU0", "rack=r1": "rack=r02", "c1-n0060": "c1-n0007",
    "acme": "tenant-a",
}  # fmt: skip
"""Names that pages leave to their readers, by one that an emulated fleet of 40 has."""


class Block(Struct, frozen=True):
    """A fenced block: its language, and its text without the indent of its fence."""

    language: str
    text: str


class Command(Struct, frozen=True):
    """A command line of a page: its words from the program on, and its text as it is written."""

    program: str
    words: tuple[str, ...]
    text: str


def path_of(page: str) -> Path:
    """The page's file, by its name."""
    return FIRST.get(page, PAGES / f"{page}.md")


def blocks(page: str) -> Iterator[Block]:
    """The page's fenced blocks, and the documents that its commands write."""
    for indent, language, text in FENCE.findall(path_of(page).read_text(encoding="utf-8")):
        block = Block(language, re.sub(rf"(?m)^{indent}", "", text))
        yield block
        yield from (Block("yaml", document) for _, document in HEREDOC.findall(block.text))


def commands(page: str) -> Iterator[Command]:
    """The page's command lines, those of others too; what commands print is left out."""
    for block in blocks(page):
        if block.language in SHELL:
            yield from _of_block(block)


def _of_block(block: Block) -> Iterator[Command]:
    lines = re.sub(r"\\\n\s*", " ", _without_documents(block.text)).splitlines()
    prompted = any(line.startswith("$ ") for line in lines)
    for line in lines:
        if prompted and not line.startswith("$ "):
            continue
        for part in re.split(r"\s(?:&&|\|)\s(?=(?:[^']*'[^']*')*[^']*$)", line.removeprefix("$ ")):
            yield from _command(part.strip())


def _command(text: str) -> Iterator[Command]:
    words = shlex.split(text.partition(" > ")[0], comments=True)
    if not words or "=" in words[0]:
        return
    program = Path(words[0]).name if Path(words[0]).name in OWN else words[0]
    if program in OWN or program in NEEDS:
        yield Command(program, tuple(words[1:]), text)


def _without_documents(text: str) -> str:
    """The text without what goes to `cat > FILE <<WORD`."""
    return HEREDOC.sub("", text)


def is_run(page: str, command: Command) -> bool:
    """Whether the command is run against an emulated fleet."""
    said = " ".join(command.words)
    if "--context" in command.words:
        return False  # it names a second cell
    return command.program == "hostler" and any(
        f"{said}\n".startswith(one) if one.endswith("\n") else f"{said} ".startswith(f"{one} ")
        for one in RUN.get(page, ())
    )


def filled(words: tuple[str, ...], told: str = "") -> list[str]:
    """The words with what was `told` last and names for those that are left to readers, and without … alone."""
    return [STANDS_FOR.get(word, word) for word in (_told(word, told) for word in words) if word != "…"]


def _told(word: str, told: str) -> str:
    for shape, place in TOLD.items():
        if shape.match(word) and (found := place.findall(told)):
            return str(found[-1])
    return word
