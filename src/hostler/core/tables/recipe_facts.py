"""Questions about a recipe by its name, answered for names without a recipe too."""

from hostler.core.state.model import ActClass
from hostler.core.state.plan_rules import PlanRules
from hostler.core.tables.recipes import RECIPES

_PLAIN = PlanRules()


def rules_of(name: str) -> PlanRules:
    """The rules for plans of this recipe; those of a plan that merely runs where there is no such recipe."""
    recipe = RECIPES.get(name)
    return recipe.rules if recipe is not None else _PLAIN


def act_class_of(name: str) -> ActClass | None:
    """The class of act that the recipe fixes, None where its remedy's timing says it."""
    recipe = RECIPES.get(name)
    return recipe.act_class if recipe is not None else None


def is_protective(name: str) -> bool:
    """Whether the recipe protects life and hardware, and so waits for nobody."""
    return act_class_of(name) is ActClass.protective


def is_disruptive(name: str) -> bool:
    """Whether the recipe empties its node first, so that it answers what people asked for on a lower rung."""
    recipe = RECIPES.get(name)
    return recipe is not None and recipe.disruptive
