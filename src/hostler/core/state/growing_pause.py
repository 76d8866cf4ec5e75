"""Time to wait before the next try: longer after each that came to nothing (docs/adr/0100)."""

DOUBLINGS_MOST = 16


def growing_s(first_s: float, times: int, most_s: float) -> float:
    """Seconds: `first_s` doubled `times` times, `most_s` at most."""
    return min(most_s, first_s * 2.0 ** min(max(times, 0), DOUBLINGS_MOST))
