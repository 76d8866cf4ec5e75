"""Maintenance windows: what can wait begins inside one only, where its scope has any."""

from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.holds_and_pauses import scopes
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import Blocker
from hostler.core.state.scopes import FLEET
from hostler.core.state.verbs.recovery import ConfirmClock
from hostler.core.state.ways_out import by_act, by_time


def outside_window(context: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """Blocker where the nodes' scopes have windows and none is open now, or a doubted clock cannot tell."""
    if not len(context.fleet.windows):
        return []
    wanted = {scope for node in request.nodes for scope in scopes(context.fleet, node)}
    windows = [w for w in context.fleet.windows.values() if w.scope in wanted and w.ends > context.sure]
    if windows and (doubt := context.fleet.cell.doubt):
        scope = min(w.scope for w in windows)
        text = f"the clock is in doubt, so no maintenance window of {scope} counts as open: {doubt.text}"
        return [Blocker("window", "clock", text, by_act(ConfirmClock(), FLEET, "the clock is confirmed"))]
    if not windows or any(w.starts <= context.now for w in windows):
        return []
    opens = min(w.starts for w in windows)
    text = f"now is outside the maintenance window of {min(w.scope for w in windows)}"
    opening = by_time(f"the window opens at {opens:%Y-%m-%d %H:%M} UTC", opens)
    return [Blocker("window", windows[0].scope.text, text, opening)]
