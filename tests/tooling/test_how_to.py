"""Every command of README, quick start and how-to pages is one that its program takes; so are documents."""

import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from hostler.agent.main import settings_from
from hostler.app.bmc_access import credentials
from hostler.app.provider_access import FILE as PROVIDERS
from hostler.app.provider_access import read_providers
from hostler.app.secret_backends import SecretBackends
from hostler.cli.expected_files import read_expected_file
from hostler.cli.main import build
from hostler.core.intents.registration import AssetSpec, NodeSpec
from hostler.core.policy import documents
from hostler.drivers.kubernetes import settings as kubernetes
from hostler.drivers.secrets.secret_cache import KeptSecrets
from hostler.drivers.slurm import settings as slurm
from hostler.server.sign_in_settings import FILE, read_sign_in
from hostler_checks.main import _parser
from hostler_checks.site_checks import parsed
from tests.how_to import ELSEWHERE, NAMES, NEEDS, ROOT, RUN, SHELL, Block, Command, blocks, commands, filled, is_run

TABLE = Path(__file__).parents[1] / "how_to.md"
SECTIONS = {"policy", "skus", "pools", "routes", "boot", "admission"}
POLICY = files("hostler.core.policy").joinpath("default_policy.yaml").read_text()
LEFT_OUT = re.compile(r'(?<=: )"?[0-9a-f]*…"?|<64 hexadecimal digits>')
"""Digests that a page does not write out."""
CHECK = {
    "check", "script", "profiles", "detects", "model", "shapes", "steps", "every", "seconds", "deadline", "folders",
}  # fmt: skip
"""Keys of a site's check that pages use."""
HASH = "a" * 64


@pytest.mark.parametrize("page", NAMES)
def test_each_command_of_a_page_is_one_that_its_program_takes(page: str) -> None:
    """Mutants: a command or option that there is no more; a choice that is none; a page nobody reads."""
    found = list(commands(page))
    assert found or page in ELSEWHERE or any(blocks(page)), "a page without commands is named in ELSEWHERE"
    for command in found:
        try:
            takes(command)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever its parser says
            pytest.fail(f"{page}: {command.text}: {type(error).__name__}: {error}")


def takes(command: Command) -> None:
    """Have the command's own parser read it. Raises what that raises."""
    words = filled(command.words)
    match command.program:
        case "hostler":
            build().parse_args(words, exit_on_error=False, print_error=False)
        case "hostler-agent":
            settings_from(words)
        case "hostler-check":
            _parser().parse_args(words)


@pytest.mark.parametrize("page", NAMES)
def test_each_document_of_a_page_is_one_that_its_reader_takes(page: str, tmp_path: Path) -> None:
    """Mutants: a field that has another name by now; a value out of bounds; a document for which there is no reader."""
    for block in blocks(page):
        if block.language in (*SHELL, "python", "ini", "hcl"):
            continue
        try:
            reader_of(block)(block, tmp_path)
        except Exception as error:  # noqa: BLE001 - whatever its reader says
            pytest.fail(f"{page}: {type(error).__name__}: {error}\n{block.text}")


Reader = Callable[[Block, Path], object]


def _providers(block: Block, folder: Path) -> object:
    (folder / PROVIDERS).write_text(block.text)
    return read_providers(folder, KeptSecrets({}, lambda: 0.0))


def reader_of(block: Block) -> Reader:
    """Reader of the document in earnest. Raises LookupError."""
    if block.language == "csv":
        return _expected
    value = yaml.safe_load(block.text)
    if isinstance(value, list) and "hosts" in value[0]:
        return _read_by_others
    if isinstance(value, list):
        return _assets if "kind" in value[0] else _nodes
    keys = {str(key) for key in value}
    if keys <= SECTIONS and not {"rules", "script"} & set(value.get("policy", {})) - {"rules"}:
        return _configuration
    for known, reader in (
        ({"platform", "namespaces", "tools", "operands"}, _kubernetes),
        ({"checks", "rest", "requeue", "commands", "classes", "grace_s"}, _slurm),
        (CHECK, _site_check),
        ({"issuer", "client_id", "secret", "address", "grants"}, _sign_in),
        ({"vault"}, _secrets),
        ({"nodes"}, _expected),
        ({"image", "controller", "ingress", "gateway"}, _values),
        ({"on", "True", "concurrency", "jobs"}, _read_by_others),
        ({"apiVersion", "kind", "clusters", "users", "contexts", "current-context"}, _read_by_others),
    ):
        if keys <= known:
            return reader
    if all(key.startswith(("http://", "https://")) for key in keys):
        return _bmcs
    if all(isinstance(entry, dict) and {"url", "secret"} <= entry.keys() for entry in value.values()):
        return _providers
    if "GitLab" in block.text:
        return _read_by_others
    raise LookupError(f"nobody reads a document with {sorted(keys)}: give it a reader here")


def _configuration(block: Block, _: Path) -> object:
    """The document beside the shipped policy, and the SKUs and pools that it takes for granted."""
    whole = yaml.safe_load(POLICY)
    given = yaml.safe_load(LEFT_OUT.sub(rf'"{HASH}"', block.text))
    _merge(whole, given)
    for pool in (pools := whole.get("pools", {})).values():
        pool.setdefault("sku", "h100")
        pool.setdefault("target", 1)
    skus = whole.setdefault("skus", {})
    for sku in {pool["sku"] for pool in pools.values()} - skus.keys():
        skus[sku] = {"gpus": 8}
    for sku in skus.values():
        sku.setdefault("gpus", 8)
    for route in whole.get("routes", {}).values():
        if tenant := route.get("tenant"):
            pools[f"of-{tenant}"] = {"sku": next(iter(skus), "h100"), "target": 1, "tenant": tenant}
            whole["pools"] = pools
            skus.setdefault("h100", {"gpus": 8})
    return documents.parse({"page.yaml": yaml.safe_dump(whole)})


def _merge(into: dict[str, Any], given: dict[str, Any]) -> None:
    for key, value in given.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _expected(block: Block, folder: Path) -> object:
    file = folder / f"expected.{block.language}"
    file.write_text(block.text)
    return read_expected_file(str(file))


def _nodes(block: Block, _: Path) -> object:
    return msgspec.convert(yaml.safe_load(block.text), list[NodeSpec])


def _assets(block: Block, _: Path) -> object:
    return msgspec.convert(yaml.safe_load(block.text), list[AssetSpec])


def _kubernetes(block: Block, _: Path) -> object:
    return kubernetes.parse("page.yaml", block.text)


def _slurm(block: Block, folder: Path) -> object:
    return slurm.parse("page.yaml", block.text)


def _site_check(block: Block, _: Path) -> object:
    return parsed(block.text, "page.yaml")


def _sign_in(block: Block, folder: Path) -> object:
    (folder / FILE).write_text(block.text)
    return read_sign_in(folder)


def _secrets(block: Block, _: Path) -> object:
    return msgspec.json.decode(block.text, type=SecretBackends)


def _bmcs(block: Block, folder: Path) -> object:
    text = re.sub(r"AB:CD:…", ":".join(["AB"] * 32), block.text)
    path = folder / "bmc.json"
    path.write_text(text)
    path.chmod(0o600)
    (folder / "bmc-ca.pem").write_text("")
    return credentials(folder)


def _values(block: Block, _: Path) -> object:
    """Values of the chart have a place in its own values: `contract/test_helm_chart.py` renders them all."""
    chart = yaml.safe_load((ROOT / "deploy/helm/hostler/values.yaml").read_text())
    given = yaml.safe_load(block.text)
    _within(given, chart, "values")
    return given


def _within(given: dict[str, Any], known: dict[str, Any], where: str) -> None:
    for key, value in given.items():
        assert key in known, f"{where}.{key} is no value of the chart"
        if isinstance(value, dict) and isinstance(known[key], dict) and known[key]:
            _within(value, known[key], f"{where}.{key}")


def _read_by_others(block: Block, _: Path) -> object:
    """Forms of others are YAML, and their commands of ours are parsed."""
    for line in re.findall(r"hostler policy sync[^\n\]]*", block.text):
        takes(Command("hostler", tuple(line.replace('"', "").split()[1:]), line))
    return json.dumps(yaml.safe_load(block.text), default=str)


def row(page: str) -> str:
    """The page's row in the table of tests/how_to.md."""
    if page in ELSEWHERE:
        return f"| {page} | – | – | {ELSEWHERE[page]} |"
    found = list(commands(page))
    run = dict.fromkeys(one for one in RUN.get(page, ()) if any(is_run(page, command) for command in found))
    needs = sorted({NEEDS[one.program] for one in found if one.program in NEEDS})
    ours = any(one.program not in NEEDS and not is_run(page, one) for one in found)
    read = any(block.language not in (*SHELL, "python", "ini", "hcl") for block in blocks(page))
    parsed = " and ".join(["its other commands"] * ours + ["its documents"] * read)
    ran = ", ".join(f"`{one.strip()}`" for one in run)
    return f"| {page} | {ran or '–'} | {parsed or '–'} | {', '.join(needs) or '–'} |"


def test_the_table_says_what_is_done_with_each_page() -> None:
    """Mutants: a page or a command of another program comes, and nobody says whether it is run, parsed or exempt."""
    wanted = "\n".join(row(page) for page in NAMES)
    assert wanted in TABLE.read_text(encoding="utf-8"), f"write this into tests/how_to.md:\n{wanted}"
