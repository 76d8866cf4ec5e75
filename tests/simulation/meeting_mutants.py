"""Bugs that are planted at meetings of nodes, for the law that watches whom they blame."""

import pytest

from hostler.polling import meeting_hall


def nothing_is_a_failed_test(patch: pytest.MonkeyPatch) -> None:
    """Takes a meeting that came to nothing, or of which its members tell different things, for one with wrong sums."""
    agreed = meeting_hall.agreed
    patch.setattr(meeting_hall, "agreed", lambda told: agreed(told) or 0.0)
