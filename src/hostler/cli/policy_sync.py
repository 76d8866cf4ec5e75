"""The plan of `hostler policy sync`: what a commit's documents change in the active configuration, told as lines."""

from collections.abc import Mapping
from typing import Any

from hostler.cli.command_errors import CommandError
from hostler.cli.exit_codes import ExitCode
from hostler.cli.policy_checkout import Committed, is_later
from hostler.client import Client, routes


def demand_later(committed: Committed, active: Mapping[str, Any]) -> None:
    """Raises CommandError where the active configuration is of a commit that this one does not come after."""
    source = active.get("source") or {}
    if source.get("commit") and not is_later(committed.folder, committed.commit, source["commit"]):
        raise CommandError(
            ExitCode.refused,
            f"commit {committed.commit[:12]} does not come after {source['commit'][:12]}, which is active",
            "merge that one, or add --allow-older to go back",
        )


def under_way(client: Client, sha256: str) -> str:
    """The rollout that brings this configuration already, as a sentence, "" where none does.

    Raises CommandError where the latest rollout of it was stopped: a timer is not to begin it over and over.
    """
    mine = [one for one in client.pages(routes.ROLLOUTS) if one["sha256"] == sha256]
    latest = max(mine, key=lambda one: one["started"], default=None)
    if latest is None or latest["state"] == "completed":
        return ""
    if latest["state"] == "running":
        return f"rollout {latest['id']} is bringing it (hostler rollout show {latest['id']})"
    raise CommandError(
        ExitCode.refused,
        f"rollout {latest['id']} of this very configuration was stopped: {latest['why']}",
        "commit a change, or add --again",
    )
