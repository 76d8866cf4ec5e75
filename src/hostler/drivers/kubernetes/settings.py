"""The document that says what is particular to one Kubernetes cluster: its platform, how work is drained, its tools."""

import re
from collections.abc import Iterator

import msgspec
import yaml
from msgspec import Struct

from hostler.core.state.durations import duration
from hostler.core.state.input_problems import InvalidInputError, Problem, WrongEntry
from hostler.drivers.kubernetes.external_controllers import ACTORS, DUTIES, Actor
from hostler.drivers.kubernetes.gpu_operator import OPERANDS, Operand
from hostler.drivers.kubernetes.workloads import CHECKS, EVICT, WAIT, DrainMethod, Spaces

MAX_TEXT = 64 * 1024
LABEL = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
LONGEST_S = 30 * 86_400.0
"""Longest wait for work before it is evicted."""


class KubernetesSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """One cluster. Names of namespaces that end in "-" mean all that begin so.

    `platform`: namespaces whose pods are infrastructure, in place of the usual ones. `namespaces`: how work there is
    drained whose pods say nothing themselves. `tools`: who else changes its nodes, beside those that are known, or with
    another duty than is known of them. `operands`: what is let go around a GPU reset, in place of the usual ones.
    """

    platform: tuple[str, ...] = Spaces().platform
    namespaces: dict[str, DrainMethod] = {}
    tools: tuple[Actor, ...] = ()
    operands: tuple[Operand, ...] = OPERANDS

    @property
    def spaces(self) -> Spaces:
        """The namespaces; that of idle checks is always the platform's."""
        return Spaces(tuple(dict.fromkeys((*self.platform, CHECKS))), self.namespaces)

    @property
    def actors(self) -> tuple[Actor, ...]:
        """Every listed tool, the cluster's own word first."""
        named = {tool.name for tool in self.tools}
        return (*self.tools, *(actor for actor in ACTORS if actor.name not in named))


def parse(name: str, text: str) -> KubernetesSettings:
    """The settings in a YAML document called `name`. Raises InvalidInputError with every problem found."""
    if len(text) > MAX_TEXT:
        raise _unusable(Problem(name, 0, f"the document has {len(text)} characters", f"write at most {MAX_TEXT}"))
    try:
        loaded = yaml.safe_load(text)
        found = msgspec.convert({} if loaded is None else loaded, KubernetesSettings)
    except yaml.YAMLError as error:
        raise _unusable(Problem(name, 0, " ".join(str(error).split())[:300], "write YAML")) from error
    except (msgspec.ValidationError, RecursionError) as error:
        known = ", ".join(field.name for field in msgspec.structs.fields(KubernetesSettings))
        raise _unusable(Problem(name, 0, str(error), f"a Kubernetes cluster has {known}")) from error
    if wrong := tuple(Problem(name, 0, one.what, one.instead) for one in _wrong(found)):
        raise _unusable(*wrong)
    return found


def _wrong(found: KubernetesSettings) -> Iterator[WrongEntry]:
    for name, manner in found.namespaces.items():
        yield from _wrong_manner(found, name, manner)
    if "" in (*found.platform, *found.namespaces):
        yield WrongEntry("a namespace has no name", "write its name")
    for one in found.operands:
        if not LABEL.fullmatch(one.label):
            yield WrongEntry(
                f"operands: '{one.label[:100]}' is not a label key", "write it as kubectl does: acme.io/gpu"
            )
    for tool in found.tools:
        yield from _wrong_tool(tool)


def _wrong_manner(found: KubernetesSettings, name: str, manner: DrainMethod) -> Iterator[WrongEntry]:
    where, after_s = f"namespaces: {name}", manner.evict_after_s
    if found.spaces.is_platform(name):
        yield WrongEntry(f"{where}: it is the platform's", "remove it here, or from platform")
    if manner.drain not in (WAIT, EVICT):
        yield WrongEntry(f"{where}: drain is '{manner.drain}'", f"write {WAIT} or {EVICT}")
    if manner.drain == EVICT and after_s is not None:
        yield WrongEntry(
            f"{where}: drain says {EVICT}, which is at once, and evict_after_s after {duration(after_s)}",
            "keep one of the two",
        )
    if after_s is not None and not 0 <= after_s <= LONGEST_S:
        yield WrongEntry(f"{where}: evict_after_s is {after_s:g}", f"write 0 to {LONGEST_S:g} seconds")


def _wrong_tool(tool: Actor) -> Iterator[WrongEntry]:
    signs = (*tool.managers, *tool.node_keys, *tool.images, *tool.apis)
    if tool.duty not in DUTIES:
        yield WrongEntry(f"tools: {tool.name}: duty is '{tool.duty}'", f"write one of {', '.join(DUTIES)}")
    if not tool.name or not signs:
        yield WrongEntry(
            f"tools: '{tool.name}' has no name, or nothing that it is known by",
            "write its name, and managers, marks, images or apis",
        )
    if "" in signs:
        yield WrongEntry(f"tools: {tool.name}: an empty sign would match every tool", "remove it")


def _unusable(*problems: Problem) -> InvalidInputError:
    return InvalidInputError(tuple(problems))
