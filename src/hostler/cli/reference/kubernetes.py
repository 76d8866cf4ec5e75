"""The page on a cluster's users' side: names in Kubernetes that may be automated on, tools, and rights."""

from collections.abc import Iterable, Iterator

from msgspec import to_builtins

from hostler.cli.reference.markdown import code, table
from hostler.core.state.intent import arguments
from hostler.core.state.verbs.facts import Verb, name_of
from hostler.drivers.kubernetes.annotation_requests import MEANINGS
from hostler.drivers.kubernetes.external_controllers import ACTORS, DUTIES
from hostler.drivers.kubernetes.gpu_operator import ALWAYS, OPERANDS
from hostler.drivers.kubernetes.public_names import (
    ANNOTATIONS,
    CONDITIONS,
    EVENTS,
    LABELS,
    OWN,
    PODS,
    REQUESTS,
    TAINTS,
    Name,
)
from hostler.drivers.kubernetes.rbac import JOINING, RIGHTS, Right

_SECTIONS = (
    (
        "Labels of Nodes",
        LABELS,
        "On members of the pools that are served in the cluster. What a label may not hold is written `-`.",
    ),
    (
        "Conditions of Nodes",
        CONDITIONS,
        "Written when they change; the last four are KEP-5683's. A Hostler that is down leaves them as they were.",
    ),
    ("Taints of Nodes", TAINTS, ""),
    ("Annotations of Nodes", ANNOTATIONS, "Written by Hostler."),
    ("Requests", REQUESTS, "Annotations of Nodes that people and programs write; taken away when they are answered."),
    ("Annotations of pods", PODS, "Written by their owners. A pod that says nothing is waited for."),
    ("Labels of Hostler's own Jobs", OWN, ""),
    (
        "Events of Nodes",
        EVENTS,
        "In the namespace `default`. Condition and reason make the reason: `DrainInProgressDraining`.",
    ),
)

_OPERANDS = (
    "What a GPU reset lets go: labels of the node that are `true` become `paused-for-hostler-reset`, and `true` again. "
    "What work may live on goes only where all GPUs are reset."
)


def page() -> str:
    """The page."""
    parts = [
        "# Kubernetes\n",
        (
            "What users of a cluster see of Hostler and may say to it. These names are a stable API: they keep their "
            "meaning, and automation may rely on them. Everything else that Hostler writes may change.\n"
        ),
    ]
    for title, names, text in _SECTIONS:
        parts += [f"## {title}\n", *([f"{text}\n"] if text else []), table(("name", "says", "values"), _rows(names))]
    meanings = ((code(word), code(name_of(type(one))), _arguments(one)) for word, one in MEANINGS.items())
    parts += ["## What may be requested\n", table(("word", "verb", "with"), meanings)]
    tools = ((one.name, one.duty, ", ".join(map(code, (*one.images, *one.apis, *one.node_keys[:2])))) for one in ACTORS)
    parts += ["## Known tools\n", *(f"- **{duty}**: {text}." for duty, text in DUTIES.items()), ""]
    parts += [table(("tool", "duty", "shows by"), tools)]
    parts += ["## Operands\n", f"{_OPERANDS}\n", table(("label", "work may live on it"), _operands())]
    parts += ["## Rights\n", "Granted by `deploy/kubernetes/rbac.yaml`, and asked for by `hostler doctor`.\n"]
    parts += [table(("right", "what for"), (*_rights(RIGHTS), *_rights(JOINING)))]
    return "\n".join(parts)


def _rows(names: Iterable[Name]) -> Iterator[tuple[str, ...]]:
    for one in names:
        yield code(one.name), one.text, one.values


def _operands() -> Iterator[tuple[str, ...]]:
    for one in OPERANDS:
        where = "always" if one.serves == ALWAYS else f"where {code(one.serves)} is `true`" if one.serves else "no"
        yield code(one.label), where


def _arguments(act: Verb) -> str:
    return ", ".join(f"{name}: {value}" for name, value in arguments(to_builtins(act)).items())


def _rights(rights: Iterable[Right]) -> Iterator[tuple[str, ...]]:
    for one in rights:
        yield code(str(one)), one.what_for
