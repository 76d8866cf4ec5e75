"""A disruption that asks the guards to pass, and what its recipe says of it."""

from msgspec import Struct

from hostler.core.state.model import ActClass, Node, Phase
from hostler.core.state.scopes import Scope
from hostler.core.tables.recipes import RECIPES


class DisruptionRequest(Struct, frozen=True):
    """A disruption that asks to pass: what, under which class, for which conditions, on which nodes.

    `scope`: the failure domain that is taken whole. `beside`: what it concerns besides its nodes, a rack and an asset
    of it.
    """

    remedy: str
    act_class: ActClass
    nodes: tuple[Node, ...]
    causes: tuple[str, ...] = ()
    confirm: bool = False
    approved: bool = False
    scope: Scope | None = None
    beside: tuple[Scope, ...] = ()


def is_harmless(remedy: str) -> bool:
    """Whether the remedy disturbs nobody: a BMC restarts and the node goes on."""
    recipe = RECIPES.get(remedy)
    return recipe is not None and not recipe.disruptive and recipe.act_class is None


def removes(remedy: str) -> bool:
    """Whether its nodes leave their pool until they have been triaged."""
    recipe = RECIPES.get(remedy)
    return recipe is not None and recipe.to_phase is Phase.triage
