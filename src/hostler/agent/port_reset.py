"""Resets this node's own port, by the direct route of no hop, which leaves the adapter never.

No other port can be named: whoever has root on a node gains nothing by this verb.
"""

import re

from hostler.agent.child_process import HungError, run
from hostler.agent.host_commands import ActFailedError, FateUnknownError, NotPossibleError
from hostler.core.state.operations import ResetPort

PORT = "1"
"""Hosts' adapters have one port each, as designs name them."""
TOOL_S = 20.0
"""The tools need some milliseconds; one that takes longer has not been heard."""
_ADAPTER = re.compile(r"[A-Za-z0-9_]{1,32}")
_STATE = re.compile(r"^LinkState:\.{2,}\w+\s*$", re.MULTILINE)


def reset(act: ResetPort, plan: str) -> str:
    """Reset the port `act.a` of this node for that plan; a sentence on it.

    Raises NotPossibleError and ActFailedError where nothing was sent, FateUnknownError where it may have been heard.
    """
    adapter = act.a.rpartition(":")[2]
    if not (plan and act.fabric and act.a and act.z):
        raise NotPossibleError("a port is reset for a plan that names the network and both ends of the cable alone")
    if not _ADAPTER.fullmatch(adapter):
        raise NotPossibleError(f"{adapter[:40]!r} is no name of an adapter")
    _seen(adapter)
    try:
        done = run(("ibportstate", "-C", adapter, "-P", PORT, "-D", "0", PORT, "reset"), TOOL_S)
    except HungError as error:
        raise FateUnknownError(f"the port of {adapter} may have been reset: {error}") from error
    except OSError as error:
        raise NotPossibleError(f"`ibportstate` cannot be run: {error.strerror}") from error
    if done.code or b"After PortInfo set:" not in done.output:
        raise FateUnknownError(f"the port of {adapter} may have been reset: `ibportstate` does not say so")
    return f"the port of {adapter} was told to reset"


def _seen(adapter: str) -> None:
    """Raises ActFailedError for a port that cannot be read: it is not reset."""
    try:
        done = run(("smpquery", "-C", adapter, "-P", PORT, "-D", "portinfo", "0", PORT), TOOL_S)
    except HungError as error:
        raise ActFailedError(f"nothing was sent: {error}") from error
    except OSError as error:
        raise NotPossibleError(f"`smpquery` cannot be run: {error.strerror}; install infiniband-diags") from error
    if done.code or not _STATE.search(done.output.decode(errors="replace")):
        raise ActFailedError(f"nothing was sent: `smpquery` does not read the port of {adapter}: {done.errors[:200]}")
