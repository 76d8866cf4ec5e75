"""Every kind of fault that the laboratory plants."""

from bench.detection import codes, kernel_lines
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
