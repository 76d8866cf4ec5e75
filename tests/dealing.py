"""Deals tests out to xdist's workers: groups stay together, and so do the cases of one unit test."""

from xdist.scheduler.loadgroup import LoadGroupScheduling

UNIT = "tests/unit/"
"""Cases of a test below this are short: dealt out one by one, they cost more to deal out than to run."""


class GroupsAndCases(LoadGroupScheduling):  # type: ignore[misc] # xdist has no types
    """Work units are groups (`xdist_group`), the cases of a unit test, and each other test by itself."""

    def _split_scope(self, nodeid: str) -> str:
        scope: str = super()._split_scope(nodeid)
        return scope.partition("[")[0] if scope.startswith(UNIT) else scope

    def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
        """Counts back to the last unit that is done, as a worker runs them in order: not all that it ever had."""
        pending = 0
        for unit in reversed(workload.values()):
            left = list(unit.values()).count(False)
            if not left:
                break
            pending += left
        return pending
