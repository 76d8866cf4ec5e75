"""Words for the nodes of the console's grid: each colouring's few, one of which stands for every node. Pure."""

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache

from hostler.core.state.configuration import LAB_PHASE_FLOOR_S, Policy, Sku, scaled
from hostler.core.state.firmware_versions import plain_name
from hostler.core.state.fleet import Fleet
from hostler.core.state.grid_names import Colouring, Grouping
from hostler.core.state.model import Node
from hostler.core.tables.phases import PHASES

UNKNOWN = "unknown"
"""The word for what nobody can say. It is never a healthy node's."""


def group_of(grouping: Grouping, node: Node) -> str:
    """The name of the group that a node is in, "" for none. A row is named with its site: others have such rows."""
    match grouping:
        case Grouping.rack:
            return node.position.rack
        case Grouping.row:
            return " / ".join(filter(None, (node.position.site, node.position.row))) if node.position.row else ""
        case Grouping.site:
            return node.position.site
        case Grouping.pool:
            return node.pool
        case Grouping.cluster:
            return node.assignment.cluster if node.assignment else ""


def word_of(
    colouring: Colouring, fleet: Fleet, now: datetime, scores: Callable[[str], int | None]
) -> Callable[[Node], str]:
    """The word that a node has under a colouring. By phase there is none: the map has a column of its own for it.

    `scores`: a node's drift score in hundredths, None where it was not judged.
    """
    match colouring:
        case Colouring.phase:
            return lambda _node: ""
        case Colouring.age:
            return lambda node: age_word(node, fleet.policy_of(node), now)
        case Colouring.tenant:
            return lambda node: node.assignment.tenant if node.assignment else ""
        case Colouring.firmware:
            return lambda node: firmware_word(node, fleet.configuration_of(node).skus.get(node.sku))
        case Colouring.check:
            return check_word
        case Colouring.drift:
            return lambda node: drift_word(scores(node.id))


def age_word(node: Node, policy: Policy, now: datetime) -> str:
    """How long the node has stood in its phase, against the phase's limit or else its usual stay."""
    row = PHASES[node.phase]
    since = node.phase_since
    if node.deadline is not None:
        limit_s = (node.deadline - since).total_seconds()
    elif row.limit_s or row.usual_s:
        since = node.stay_granted or since
        limit_s = scaled(policy, row.limit_s or row.usual_s or 0.0, LAB_PHASE_FLOOR_S)
    else:
        return "no_limit"
    age_s = (now - since).total_seconds()
    if age_s >= limit_s:
        return "over_limit"
    return "over_half" if age_s >= limit_s / 2 else "under_half"


def firmware_word(node: Node, sku: Sku | None) -> str:
    """Whether all that the BMC last listed satisfies the SKU's baseline; unknown where a version is missing."""
    if sku is None:
        return UNKNOWN
    if not sku.firmware:
        return "no_baseline"
    listed: dict[str, str] = {}
    for name, version in (*node.versions, *node.firmware):
        listed.setdefault(_plain(name), version)
    runs = [(listed.get(_plain(name), ""), name, wanted) for name, wanted in sku.firmware.items()]
    if any(version and version not in _good(sku, name, wanted) for version, name, wanted in runs):
        return "not_at_baseline"
    return "at_baseline" if all(version for version, _, _ in runs) else UNKNOWN


def check_word(node: Node) -> str:
    """The verdict of the node's last check; unknown where none is known."""
    last = max(node.checks, key=lambda check: check.at, default=None)
    return last.verdict.value if last else UNKNOWN


def drift_word(hundredths: int | None) -> str:
    """The drift score as a number from 0.00 to 1.00; unknown where the node was not judged."""
    return UNKNOWN if hundredths is None else _NUMBERS[hundredths]


_NUMBERS = tuple(f"{number / 100:.2f}" for number in range(101))


def _good(sku: Sku, name: str, wanted: str) -> tuple[str, ...]:
    how = sku.updates.get(name)
    return (wanted, *how.allowed) if how else (wanted,)


_plain = lru_cache(maxsize=4096)(plain_name)
"""A fleet has some hundreds of names of components, each on thousands of nodes."""
