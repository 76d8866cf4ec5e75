"""Reports of what was read, compared or judged beside the loop: what is recorded of them, and who waits for them."""

from collections.abc import Iterable
from datetime import timedelta

from msgspec.structs import replace

from hostler.controller import fabric_reports, trend_reports
from hostler.controller.inputs import AuditSeen, DiskSeen, FabricSeen, LinksSeen, RackSeen, SubnetSeen, TrendsSeen
from hostler.core.planning import asset_certificates, asset_logins, cabling
from hostler.core.policy import asset_certificate_cases, asset_login_cases, rack_faults
from hostler.core.state import events as e
from hostler.core.state.asset_operations import under_way
from hostler.core.state.bmc_certificate import CERTIFY
from hostler.core.state.bmc_login import RENEW
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet

REFRESH = timedelta(minutes=30)
"""A look that shows nothing new is recorded again after so long: it is looked at still."""

Reported = FabricSeen | LinksSeen | SubnetSeen | TrendsSeen | RackSeen | AuditSeen | DiskSeen


def of_report(context: DecisionContext, seen: Reported) -> Iterable[e.Event]:
    """Events that follow from the report."""
    match seen:
        case FabricSeen(report=report):
            return fabric_reports.of_report(context, report)
        case LinksSeen(round=links):
            return fabric_reports.of_links(context, links)
        case SubnetSeen(reading=reading):
            return fabric_reports.of_subnet(context, reading)
        case TrendsSeen(report=trends):
            return tuple(trend_reports.of_trends(context.fleet, trends))
        case RackSeen():
            return _of_asset(context, seen)
        case AuditSeen(seals=seals):
            return (e.AuditSealed(seals),)
        case DiskSeen(low=low):
            changed = bool(low) != bool(context.fleet.cell.disk)
            return (e.DiskRoomChanged(low),) if changed and context.may_write("disk_room_changed") else ()


def _of_asset(context: DecisionContext, seen: RackSeen) -> tuple[e.Event, ...]:
    """The look, where it shows anything new or the last one has grown old; of an asset that is gone nothing."""
    asset = context.fleet.assets.get(seen.asset)
    if asset is None or not context.may_write("asset_seen"):
        return ()
    known = asset.look
    if known is not None and known.said == seen.look.said and seen.look.at - known.at < REFRESH:
        return ()
    if seen.look.why and any(under_way(context.fleet, asset, kind) for kind in (CERTIFY, RENEW)):
        return ()  # it restarts with its new certificate, or is asked for its new password: the outcome says more
    looked, events = replace(asset, look=seen.look), list[e.Event]((e.AssetSeen(seen.asset, seen.look),))
    if context.may_write("asset_rebound"):
        events += rack_faults.of_look(context, looked)
    if not context.may_write("asset_login_due"):
        return tuple(events)
    events += asset_login_cases.of_look(context, looked)
    events += asset_certificate_cases.of_look(context, looked)
    if any(isinstance(event, e.AssetOperationStarted) for event in events):
        return tuple(events)  # it is being switched off: one act at a time on a BMC
    return (*events, *(tuple(asset_logins.of_look(context, looked)) or asset_certificates.of_look(context, looked)))


def cause_of(seen: Reported) -> str:
    """The cause of these events."""
    match seen:
        case FabricSeen(report=about) | LinksSeen(round=about) | SubnetSeen(reading=about):
            return f"fabric:{about.fabric}"
        case TrendsSeen():
            return "trends"
        case RackSeen(asset=name):
            return f"asset:{name}"
        case AuditSeen():
            return "audit"
        case DiskSeen():
            return "disk"


def waiting_for(fleet: Fleet, seen: Reported) -> Iterable[str]:
    """Nodes that wait for the report."""
    return cabling.waiting(fleet, seen.report.fabric) if isinstance(seen, FabricSeen) else ()
