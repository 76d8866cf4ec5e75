"""Reading configuration documents (YAML): checked whole, refused whole, with file, line and what to write instead.

A document holds any of the sections `policy`, `skus`, `pools`, `routes`, `boot` and `admission`; together the documents
given must hold a policy.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.diagnose.gate.gpus import GPU_READINGS
from hostler.core.policy.boot_rules import boot_problems
from hostler.core.policy.check_documents import check_problems
from hostler.core.policy.checklist_documents import checklist_problems
from hostler.core.policy.firmware_documents import firmware_problems
from hostler.core.policy.hardware_documents import hardware_problems
from hostler.core.policy.people_documents import people_problems
from hostler.core.policy.rack_documents import rack_problems
from hostler.core.policy.route_check import route_problems
from hostler.core.policy.source_documents import source_problems
from hostler.core.policy.tpm_documents import tpm_problems
from hostler.core.policy.yaml_tree import YamlTree, read
from hostler.core.state.boot import BootConfiguration
from hostler.core.state.configuration import (
    REMEDIES,
    RENEWED_AT_MOST_S,
    RESET_DOMAINS,
    STRIKES_KEPT_S,
    BmcCertificatePolicy,
    BmcCredentialPolicy,
    Configuration,
    IdleCheckPolicy,
    Policy,
    Pool,
    Rule,
    Rung,
    Sku,
    TrendPolicy,
)
from hostler.core.state.durations import duration
from hostler.core.state.expected import COMPARED, AdmissionRules
from hostler.core.state.input_problems import InvalidInputError, Problem, WrongEntry
from hostler.core.state.model import RESET_CLIENTS
from hostler.core.state.notify_routes import SEVERITIES, Route
from hostler.core.state.pool_mode import Mode
from hostler.core.state.syndromes import CAUSES
from hostler.core.tables.operations import IDLE_CHECK
from hostler.core.tables.part_kinds import PART_KINDS
from hostler.core.tables.phases import PHASES
from hostler.core.tables.recipes import RECIPES

MAX_NUMBER = 1e9
"""No count, percentage or number of seconds (32 years) is larger."""
SECTIONS = ("policy", "skus", "pools", "routes", "boot", "admission")
TAKEN_WHOLE = ("nvlink", "rack")
"""Kinds of failure domain that a fault may be of as a whole."""
ACTIONS = (
    *(*REMEDIES, "bmc_reset", "renew_bmc_login", "renew_bmc_certificate", "port_reset"),
    *("firmware_update", "protective_power_off", "power_off", "release"),
)
"""Remedies that a rule's `remedy` may name; "" watches only."""

T = TypeVar("T")


class _Loaded(Struct):
    name: str
    tree: YamlTree
    data: dict[str, Any]


def parse(documents: dict[str, str]) -> Configuration:
    """The configuration of these documents (file name → text).

    Raises InvalidInputError with every problem found; the caller's running configuration stays as it is.
    """
    loaded = [_load(name, text) for name, text in sorted(documents.items())]
    problems = [problem for document in loaded for problem in _unknown_sections(document)]
    if problems:
        raise InvalidInputError(tuple(problems))
    policy = _section(loaded, "policy", Policy, problems)
    skus = _section(loaded, "skus", dict[str, Sku], problems)
    pools = _section(loaded, "pools", dict[str, Pool], problems)
    routes = _section(loaded, "routes", dict[str, Route], problems)
    boot = _section(loaded, "boot", BootConfiguration, problems)
    admission = _section(loaded, "admission", AdmissionRules, problems)
    if policy is None and not problems:
        problems.append(Problem("configuration", 0, "no section 'policy' in any document", "add one"))
    if problems or policy is None:
        raise InvalidInputError(tuple(problems))
    configuration = Configuration(
        policy, skus or {}, pools or {}, digest(documents), routes=routes or {}, boot=boot, admission=admission
    )
    problems.extend(_contradictions(configuration, loaded))
    if problems:
        raise InvalidInputError(tuple(problems))
    return configuration


def digest(documents: dict[str, str]) -> str:
    """sha256 over names and texts, in the order of the names."""
    total = hashlib.sha256()
    for name, text in sorted(documents.items()):
        total.update(f"{name}\0{len(text)}\0{text}\0".encode())
    return total.hexdigest()


def _load(name: str, text: str) -> _Loaded:
    tree = read(name, text)
    return _Loaded(name, tree, tree.value)


def _unknown_sections(document: _Loaded) -> Iterator[Problem]:
    for key, (line, _) in document.tree.entries.items():
        if key not in SECTIONS:
            yield Problem(document.name, line, f"unknown section '{key[:100]}'", f"write one of {', '.join(SECTIONS)}")


def _section(loaded: list[_Loaded], section: str, wanted: type[T], problems: list[Problem]) -> T | None:
    holders = [document for document in loaded if section in document.data]
    if len(holders) > 1:
        names = " and ".join(document.name for document in holders)
        problems.append(Problem(names, 0, f"section '{section}' is in both", "keep it in one document"))
    if not holders:
        return None
    document = holders[0]
    problems.extend(_misnamed(document, section))
    try:
        return msgspec.convert(_named(section, document.data[section]), wanted)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        path = path.rstrip("`")
        where = _row_of(section, document.data[section], wanted, path)
        named = section if where == path else f"{section}{where}"
        line = _line_of(document.tree, f".{section}{where}")
        problems.append(Problem(document.name, line, f"{named}: {what}", _advice(what)))
        return None


def _row_of(section: str, data: Any, wanted: Any, path: str) -> str:
    """The path with the key of the row that is wrong, where msgspec names none: each row is read by itself."""
    if not path.startswith("[...]") or not isinstance(data, dict):
        return path
    for key, row in data.items():
        try:
            msgspec.convert(_named(section, {key: row}), wanted)
        except msgspec.ValidationError:
            return f".{str(key)[:100]}{path.removeprefix('[...]')}"
    return path


def _named(section: str, data: Any) -> Any:
    """Rows are keyed by their name; write it into the row, so that people need not say it twice."""
    if not isinstance(data, dict):
        return data
    if section == "policy":
        rules = data.get("rules")
        return {**data, "rules": _with("condition", rules)} if isinstance(rules, dict) else data
    if section == "boot":
        images = data.get("images")
        return {**data, "images": _with("name", images)} if isinstance(images, dict) else data
    if section == "admission":
        return data
    return _with("name", data)


def _with(field: str, rows: dict[Any, Any]) -> dict[Any, Any]:
    return {key: {field: key, **row} if isinstance(row, dict) else row for key, row in rows.items()}


_KEYED = {"policy": (("policy", "rules"), "condition"), "boot": (("boot", "images"), "name")}
"""Path to the rows of a section, and the field that repeats their key, where it is not its own rows' name."""


def _misnamed(document: _Loaded, section: str) -> Iterator[Problem]:
    """Rows that call themselves other than their key does: what names one would find another, or none."""
    path, field = _KEYED.get(section, ((section,), "name"))
    rows: Any = document.data
    for step in path:
        rows = rows.get(step) if isinstance(rows, dict) else None
    for key, row in rows.items() if isinstance(rows, dict) else ():
        said = row.get(field, key) if isinstance(row, dict) else key
        if said != key:
            where = _find([document], (*path, str(key), field))
            told = f"{'.'.join(path)}: the row '{str(key)[:100]}' has the {field} '{str(said)[:100]}'"
            yield Problem(*where, told, f"write {field}: {str(key)[:100]}, or leave it out")


def _line_of(tree: YamlTree, path: str) -> int:
    """The line of the deepest node of a msgspec error path that can be followed.

    A path through a mapping's values reads `[...]`, which names no key: the search stops at that mapping.
    """
    line = tree.line
    for step in (s for s in path.replace("[", ".[").split(".") if s):
        found = _child(tree, step)
        if found is None:
            break
        line, tree = found
    return line


def _child(tree: YamlTree, step: str) -> tuple[int, YamlTree] | None:
    place = step.strip("[]")
    if tree.items and place.isdigit() and int(place) < len(tree.items):
        item = tree.items[int(place)]
        return item.line, item
    return tree.entries.get(step)


def _advice(what: str) -> str:
    if "unknown field" in what:
        return "remove it, or see the schema with `hostler policy schema`"
    if "missing required" in what:
        return "add it"
    return "write a value of that type"


def _contradictions(configuration: Configuration, loaded: list[_Loaded]) -> Iterator[Problem]:
    for rule in configuration.policy.rules.values():
        yield from _rule_problems(rule, loaded)
    for name, rung in configuration.policy.rungs.items():
        yield from _rung_problems(name, rung, _find(loaded, ("policy", "rungs", name)))
    for path, number in _numbers(msgspec.to_builtins(replace(configuration, boot=None)), ()):
        if not 0 <= number <= MAX_NUMBER:
            line = _find(loaded, path)
            yield Problem(*line, f"{'.'.join(path)}: {number} is out of range", f"write 0 to {MAX_NUMBER:g}")
    for domain in configuration.policy.incidents.domains:
        if domain not in CAUSES:
            line = _find(loaded, ("policy", "incidents", "domains", domain))
            yield Problem(*line, f"no kind of shared part '{domain}'", f"write one of {', '.join(CAUSES)}")
    if not configuration.policy.time_scale > 0:
        yield Problem(*_find(loaded, ("policy", "time_scale")), "time_scale must be above 0", "write 1 for real time")
    yield from _login_problems(configuration.policy.bmc_credentials, _find(loaded, ("policy", "bmc_credentials")))
    place = _find(loaded, ("policy", "bmc_certificates"))
    yield from _certificate_problems(configuration.policy.bmc_certificates, place)
    yield from _trend_problems(configuration.policy.trends, _find(loaded, ("policy", "trends")))
    yield from _slot_problems(configuration.policy.slots, _find(loaded, ("policy", "slots")))
    yield from _found(source_problems(configuration.policy.sources), loaded)
    for sku in configuration.skus.values():
        yield from _reset_problems(sku, _find(loaded, ("skus", sku.name, "reset")))
        yield from _reading_problems(sku, _find(loaded, ("skus", sku.name, "without")))
        yield from _kind_problems(sku, loaded)
        yield from _count_problems(sku, loaded)
        yield from _found(
            (
                *firmware_problems(sku),
                *hardware_problems(sku),
                *rack_problems(sku),
                *tpm_problems(sku),
                *check_problems(sku),
            ),
            loaded,
        )
    yield from _found(checklist_problems(configuration), loaded)
    yield from _found(people_problems(configuration), loaded)
    for pool in configuration.pools.values():
        yield from _pool_problems(pool, configuration, loaded)
    yield from _notify_problems(configuration, loaded)
    yield from _found((wrong.below(("boot",)) for wrong in boot_problems(configuration)), loaded)
    yield from _owner_problems(configuration, loaded)


def _notify_problems(configuration: Configuration, loaded: list[_Loaded]) -> Iterator[Problem]:
    for route in configuration.routes.values():
        place = ("routes", route.name)
        yield from _found((wrong.below(place, f"route '{route.name}'") for wrong in route_problems(route)), loaded)
    if (named := configuration.policy.pages.severity) not in ("", *SEVERITIES):
        line = _find(loaded, ("policy", "pages"))
        yield Problem(*line, f"pages: no severity '{named}'", f"write one of {', '.join(SEVERITIES)}, or ''")


def _found(wrong: Iterable[WrongEntry], loaded: list[_Loaded]) -> Iterator[Problem]:
    """The entries with the documents and lines in which they stand."""
    yield from (Problem(*_find(loaded, one.path), one.what, one.instead) for one in wrong)


def _owner_problems(configuration: Configuration, loaded: list[_Loaded]) -> Iterator[Problem]:
    for field in configuration.admission.owners if configuration.admission is not None else ():
        if field not in COMPARED:
            line = _find(loaded, ("admission", "owners", field))
            yield Problem(*line, f"admission compares no field '{field[:80]}'", f"write one of {', '.join(COMPARED)}")


def _numbers(tree: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], float]]:
    """Every number of the configuration with its path; not a number (nan) is none that any limit allows."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _numbers(value, (*path, str(key)))
    elif isinstance(tree, int | float) and not isinstance(tree, bool):
        yield path, tree


def _login_problems(rules: BmcCredentialPolicy, line: tuple[str, int]) -> Iterator[Problem]:
    if 0 < rules.renew_every_s < RENEWED_AT_MOST_S:
        told = f"bmc_credentials: renew_every_s is {duration(rules.renew_every_s)}"
        yield Problem(*line, told, f"write 0 for never, or {RENEWED_AT_MOST_S:g} (a day) and more")


def _certificate_problems(rules: BmcCertificatePolicy, line: tuple[str, int]) -> Iterator[Problem]:
    if 0 < rules.renew_every_s < RENEWED_AT_MOST_S:
        told = f"bmc_certificates: renew_every_s is {duration(rules.renew_every_s)}"
        yield Problem(*line, told, f"write 0 for never, or {RENEWED_AT_MOST_S:g} (a day) and more")
    if not rules.before_expiry_s + RENEWED_AT_MOST_S <= rules.valid_s:
        told = (
            f"bmc_certificates: valid_s is {duration(rules.valid_s)}, before_expiry_s {duration(rules.before_expiry_s)}"
        )
        yield Problem(*line, told, "write a valid_s that is a day longer than before_expiry_s, or more")


def _trend_problems(trends: TrendPolicy, line: tuple[str, int]) -> Iterator[Problem]:
    if not 0 < trends.healthy_share_a_month < 1:
        told = f"trends: healthy_share_a_month is {trends.healthy_share_a_month:g}"
        yield Problem(*line, told, "write a share above 0 and below 1, as 0.003")


def _slot_problems(slots: IdleCheckPolicy, line: tuple[str, int]) -> Iterator[Problem]:
    if not 0 < slots.limit_s < slots.period_s:
        told = f"slots: limit_s is {duration(slots.limit_s)}, period_s is {duration(slots.period_s)}"
        yield Problem(*line, told, "write a limit_s above 0 and below period_s")
    if not slots.percent <= 100:
        yield Problem(*line, f"slots: percent is {slots.percent:g}", "write 0 to 100")


def _rung_problems(name: str, rung: Rung, line: tuple[str, int]) -> Iterator[Problem]:
    if name not in REMEDIES:
        yield Problem(*line, f"no rung '{name}'", f"write one of {', '.join(REMEDIES)}")
    if rung.window_s > STRIKES_KEPT_S:
        kept = f"attempts are forgotten after {duration(STRIKES_KEPT_S)}"
        told = f"rung '{name}' has window_s {rung.window_s:.0f}, and {kept}"
        yield Problem(*line, told, f"write a window_s of at most {STRIKES_KEPT_S:.0f}")


def _reset_problems(sku: Sku, line: tuple[str, int]) -> Iterator[Problem]:
    if sku.reset.domain not in RESET_DOMAINS:
        told = f"SKU {sku.name}: no reset domain '{sku.reset.domain}'"
        yield Problem(*line, told, f"write one of {', '.join(RESET_DOMAINS)}")
    for unit in (*sku.reset.clients, sku.reset.fabric):
        if unit and unit not in RESET_CLIENTS:
            told = f"SKU {sku.name}: '{unit}' may not be stopped for a reset"
            yield Problem(*line, told, f"write some of {', '.join(RESET_CLIENTS)}")


def _reading_problems(sku: Sku, line: tuple[str, int]) -> Iterator[Problem]:
    for reading in sku.without:
        if reading not in GPU_READINGS:
            told = f"SKU {sku.name}: a gate knows no reading '{reading}'"
            yield Problem(*line, told, f"write some of {', '.join(GPU_READINGS)}")


def _kind_problems(sku: Sku, loaded: list[_Loaded]) -> Iterator[Problem]:
    """Kinds of part that no reader reports: a node of the SKU would never leave Seatrial."""
    for field, named in (("parts", sku.parts), ("models", sku.models), ("slots", sku.slots)):
        for kind in named:
            if kind not in PART_KINDS:
                told = f"SKU {sku.name}, {field}: no kind of part '{kind}'"
                yield Problem(
                    *_find(loaded, ("skus", sku.name, field, kind)), told, f"write some of {', '.join(PART_KINDS)}"
                )


def _count_problems(sku: Sku, loaded: list[_Loaded]) -> Iterator[Problem]:
    """Two counts of GPUs: whichever is wrong, every node of the SKU would be held against it."""
    if (counted := sku.parts.get("gpu", sku.gpus)) != sku.gpus:
        told = f"SKU {sku.name}: gpus is {sku.gpus}, parts.gpu is {counted}"
        advice = "keep gpus, set to what the node has, and remove gpu from parts"
        yield Problem(*_find(loaded, ("skus", sku.name, "parts", "gpu")), told, advice)


def _rule_problems(rule: Rule, loaded: list[_Loaded]) -> Iterator[Problem]:
    where = _find(loaded, ("policy", "rules", rule.condition))
    if rule.remedy and rule.remedy not in ACTIONS:
        yield Problem(*where, f"no remedy '{rule.remedy}'", f"write one of {', '.join(ACTIONS)}, or ''")
    if rule.timing not in ("immediate", "pending"):
        yield Problem(*where, f"no timing '{rule.timing}'", "write immediate or pending")
    if rule.dooms not in ("part", "node", "none"):
        yield Problem(*where, f"dooms is '{rule.dooms}'", "write part, node or none")
    if rule.domain not in ("", *TAKEN_WHOLE):
        yield Problem(
            *where,
            f"no domain '{rule.domain}' is taken whole",
            f"write one of {', '.join(TAKEN_WHOLE)}",
        )


def _pool_problems(pool: Pool, configuration: Configuration, loaded: list[_Loaded]) -> Iterator[Problem]:
    where = _find(loaded, ("pools", pool.name))
    if pool.sku not in configuration.skus:
        yield Problem(*where, f"pool '{pool.name}' names the unknown SKU '{pool.sku}'", "add it under skus")
    if not pool.budget.percent <= 100:
        yield Problem(*where, f"pool '{pool.name}': its budget is {pool.budget.percent} percent", "write 0 to 100")
    for remedy, mode in pool.modes.items():
        if remedy not in ("*", IDLE_CHECK) and remedy not in ACTIONS and remedy not in RECIPES:
            yield Problem(
                *where,
                f"pool '{pool.name}': mode for the unknown remedy '{remedy}'",
                f"write one of {', '.join(ACTIONS)}, or '*'",
            )
        assert isinstance(mode, Mode), "msgspec has checked modes"


def _find(loaded: list[_Loaded], path: tuple[str, ...]) -> tuple[str, int]:
    for document in loaded:
        tree = document.tree
        line = 0
        for step in path:
            found = _child(tree, step)
            if found is None:
                break
            line, tree = found
        else:
            return document.name, line
    return loaded[0].name, 0


def schema() -> dict[str, Any]:
    """The JSON schema of the sections, for editors and `hostler policy schema`."""
    kinds = (Policy, Sku, Pool, Route, BootConfiguration, Rule, Rung)
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    policy, sku, pool, route, boot, *_ = schemas
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Hostler configuration",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "policy": policy,
            "skus": {"type": "object", "additionalProperties": sku},
            "pools": {"type": "object", "additionalProperties": pool},
            "routes": {"type": "object", "additionalProperties": route},
            "boot": boot,
        },
        "$defs": components,
    }


assert all(row.recipe in RECIPES or not row.recipe for row in PHASES.values()), "every phase's recipe exists"
