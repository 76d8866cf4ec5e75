"""How fast an emulated fleet lives, so that a laptop carries it: of many nodes each is heard less often."""

FULL_PACE = 128
"""As many emulated nodes beat, look and are looked at as often as real ones; more share what these cost."""
SILENCE_S = 30.0
"""How long an agent that keeps full pace is not heard before it is lost, as in the shipped policy."""
LOOKS_PER_S = 12.0
"""Looks at emulated BMCs a second: each costs the watch and the BMC, which is played here too."""
BRING_UP, BRING_UP_LARGE = 64, 8
"""Nodes that are brought up at the same time: of a fleet at full pace, and beside the many of a larger one."""

IMAGE = "check.test/passes"
"""An image that whoever plays the kubelets may know; where nobody does, checks end with their time, inconclusively."""

LATE_S, LOOKS_COUNTED = 0.5, 10
"""How late the event loop may be on average, over about so many looks."""
TOLD_S = 60.0
"""How often it is said that the machine is too slow."""


def pace_of(nodes: int) -> float:
    """How many times as seldom as a real node's an emulated node's agent beats and looks."""
    return max(1.0, nodes / FULL_PACE)


def lab_rows(nodes: int, scale: float) -> dict[str, str]:
    """Rows of the shipped policy that an emulated fleet of this size has its own of."""
    slots = f"period_s: {3600 * pace_of(nodes):g}, quiet_s: 60, limit_s: 1500, count: 16, percent: 10, image: {IMAGE}"
    return {
        "time_scale": str(scale),
        "brake": "{disruptions: 200, percent: 50, window_s: 3600}",  # a fault a minute would latch the default, rightly
        "slots": f"{{{slots}}}",
        "agent_silence_s": f"{SILENCE_S * pace_of(nodes):g}",
        "bring_up_at_once": str(BRING_UP if pace_of(nodes) == 1.0 else BRING_UP_LARGE),
    }


class Strain:
    """Tells whether the machine underneath keeps up with so many emulated nodes; once in TOLD_S, while it does not."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._late_s = 0.0
        self._missed = 0
        self._told_s = float("-inf")

    def look(self, now_s: float, late_s: float, missed: int) -> dict[str, object]:
        """Take a look; the facts that are to be said now, {} for none.

        `late_s` is how late this look is, `missed` how many agents began to miss heartbeats since the last.
        """
        self._late_s += (late_s - self._late_s) / LOOKS_COUNTED
        self._missed += missed
        if now_s - self._told_s < TOLD_S or not (self._late_s > LATE_S or self._missed):
            return {}
        told, self._told_s, self._missed = self._missed, now_s, 0
        return {
            "nodes": self._nodes,
            "late_s": round(self._late_s, 1),
            "agents_unheard": told,
            "means": "the emulation is late, and nodes that are said to be lost may be sound",
            "instead": f"start fewer: --nodes {max(1, self._nodes // 2)}",
        }
