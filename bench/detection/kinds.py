"""Every kind of fault that the laboratory plants."""

from bench.detection import codes, kernel_lines, states
from bench.detection.plants import Placed, placed


def lines() -> tuple[Placed, ...]:
    """Faults that the kernel log shows, each where no other hides it."""
    return placed(
        (
            *codes.xids(),
            *codes.nvlink5(),
            *codes.sxids(),
            *codes.bursts(),
            *kernel_lines.families(),
            *kernel_lines.userspace(),
        )
    )


def shown() -> tuple[states.State, ...]:
    """Faults that something else shows, as far as that can be told without processes."""
    return tuple(state for state in states.states() if not isinstance(state.shows, states.Unread))
