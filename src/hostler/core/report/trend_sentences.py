"""Findings of trends as sentences for people."""

from hostler.core.state.trends import DriftFinding, LemonFinding, ShiftFinding


def drift_sentence(drift: DriftFinding) -> str:
    """The drift: of what, by how much, since when, and where it is going."""
    part = f" of {drift.part}" if drift.part else ""
    text = f"{drift.metric}{part} has changed by {_amount(drift.metric, drift.change)} beside peers"
    text += f" since {drift.since:%Y-%m-%d}"
    if not drift.judged:
        return f"{text}; it could not be judged again since"
    if drift.floor_in is None:
        return text if drift.daily else f"{text}, in a step"
    latest = f"{drift.floor_in.latest:.0f}" if drift.floor_in.latest is not None else "more than 365"
    return (
        f"{text}; it goes on, and is expected at its floor in {drift.floor_in.expected:.0f} days "
        f"({drift.floor_in.soonest:.0f} to {latest}, 90 %)"
    )


def shift_sentence(shift: ShiftFinding) -> str:
    """The change that has moved a whole cohort."""
    text = f"{shift.metric} of {shift.nodes} series has moved together by {_amount(shift.metric, shift.change)}"
    if shift.stack == shift.before:
        return f"{text} since {shift.since:%Y-%m-%d}, without a known change ({shift.stack})"
    return f"{text} with the change from '{shift.before}' to '{shift.stack}' since {shift.since:%Y-%m-%d}"


def lemon_sentence(one: LemonFinding) -> str:
    """Why it is a lemon, or is none: its troubles, their rate beside what is usual, and how sure that is."""
    times = "1 trouble" if one.count == 1 else f"{one.count} troubles"
    began = ", ".join(f"{kind} {count}x" for kind, count in sorted(one.troubles.items()))
    where = f" of {len(one.nodes)} nodes" if len(one.nodes) > 1 else ""
    text = f"{times} ({began}) in {one.days:.1f} days in service{where}: {one.rate:.1f} a year "
    text += f"({one.low:.1f} to {one.high:.1f}, 90 %), where {one.usual:.1f} is usual for {one.kind or 'its kind'}"
    if one.lemon:
        return text
    return f"{text}; too little to tell" if one.count > 1 else f"{text}; one trouble convicts nobody"


_IN_UNITS = {
    "_percent": "points",
    "_c": "°C",
    "errors": "on the scale of counts",
    "corrected": "on the scale of counts",
}


def _amount(metric: str, change: float) -> str:
    unit = next((unit for end, unit in _IN_UNITS.items() if metric.endswith(end)), "")
    return f"{change:+.1f} {unit}" if unit else f"{change:+.1%}"
