"""One sentence for each event of a rack."""

from typing import assert_never

from hostler.core.state import events as e
from hostler.core.state.counting import counted


def of_rack(event: e.RackEvent) -> str:  # noqa: C901, PLR0911, PLR0912 - one flat table of cases
    """The event in one line."""
    match event:
        case e.RackRunBegan(run=run):
            bundle = f" to bundle {run.bundle}" if run.bundle else ""
            steps = counted(len(run.steps), "step")
            return f"rack {run.rack} is brought up{bundle}, {steps}, asked by {run.person}: {run.reason}"
        case e.RackActsLaid():
            assets = counted(len({act.asset for act in event.acts}), "asset")
            return f"rack {event.rack}: {counted(len(event.acts), 'act')} on {assets} laid down"
        case e.RackActDone():
            return f"rack {event.rack}: {counted(event.acted, 'act')} of the step done"
        case e.RackStepDone():
            return f"rack {event.rack}: {_words(event.step)} done"
        case e.RackWaitChanged(waiting=waiting):
            if waiting is None:
                return f"rack {event.rack} no longer waits"
            return f"rack {event.rack}: {_words(waiting.what)} waits: {'; '.join(b.text for b in waiting.blockers)}"
        case e.RackRunEnded():
            by = f" by {event.person}" if event.person else ""
            why = f": {event.why}" if event.why else ""
            return f"rack {event.rack}: bring-up {_words(event.result)}{by} at {_words(event.step)}{why}"
        case e.AssetOperationStarted(operation=operation):
            again = f", attempt {operation.attempt}" if operation.attempt > 1 else ""
            return f"{operation.kind} of {operation.node} began{again}"
        case e.AssetOperationFinished():
            detail = f": {event.detail}" if event.detail else ""
            return f"{event.kind} of {event.asset} {_words(event.result)}{detail}"
        case e.AssetOperationSettled():
            return f"late operation on {event.asset} can no longer take effect: {event.detail}"
        case e.AssetCertificateDue():
            return f"the certificate of {event.asset}'s BMC is to be renewed ({event.by}): {event.why}"
        case e.AssetLoginDue():
            return f"the password of {event.asset}'s BMC is to be renewed ({event.by}): {event.why}"
        case e.RackCertified(certificate=one):
            bundle = f", bundle {one.bundle}" if one.bundle else ""
            parts = counted(len(one.evidence), "part")
            return f"rack {one.rack} certified by {one.person}{bundle}, {parts}: certificate {one.digest[:12]}"
        case e.RackCertificateVoided():
            return f"rack {event.rack}: its certificate is void: {event.why}"
        case _:
            assert_never(event)


def _words(name: str) -> str:
    return name.replace("_", " ")
