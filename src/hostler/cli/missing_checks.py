"""Checks that the agents of a pool's nodes lack, and what would wait for a person because of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hostler.core.conditions.unanswered_checks import asked_for

NAMED = 10
"""So many nodes are named in one line."""


def lacking(cluster: str, agents: Mapping[str, Sequence[str] | None]) -> list[dict[str, Any]]:
    """Rows for each check that a recipe asks for; `agents` are nodes with the checks that theirs has, None: unsaid."""
    return [row for profile, recipes in asked_for().items() for row in _of(cluster, profile, recipes, agents)]


def _of(
    cluster: str, profile: str, recipes: tuple[str, ...], agents: Mapping[str, Sequence[str] | None]
) -> Iterator[dict[str, Any]]:
    without = [node for node, told in agents.items() if told is not None and profile not in told]
    unsaid = [node for node, told in agents.items() if told is None]
    able = len(agents) - len(without) - len(unsaid)
    row = {"cluster": cluster, "kind": "check", "name": profile, "bad": False, "instead": "", "remediator": False}
    if without:
        text = f"{len(without)} of {len(agents)} agents do not have it ({_named(without)}); "
        text += f"asked for by {', '.join(recipes)}"
        instead = f"install an agent that has it; else each waits for `hostler node vouch NODE --profile {profile}`"
        yield {**row, "text": text, "bad": True, "instead": instead}
    if unsaid:
        text = f"{len(unsaid)} of {len(agents)} agents have not said whether they have it ({_named(unsaid)})"
        yield {**row, "text": text, "bad": True, "instead": "see `hostler node agents`: not heard, or to be upgraded"}
    if not without and not unsaid:
        yield {**row, "text": f"{able} of {len(agents)} agents have it"}


def _named(nodes: list[str]) -> str:
    return f"{', '.join(nodes[:NAMED])}{' …' if len(nodes) > NAMED else ''}"
