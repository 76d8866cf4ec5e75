"""How vendors' BMCs take BIOS settings: where they wait, what applies them, and what is refused.

Places and apply times are those that libredfish's vendor modules use; each row is one level of firmware.
"""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from hostler.sim.bmc.emulated_machine import BmcRefusalError, Machine
from hostler.sim.bmc.resource_parts import ROOT, Document, link

APPLY_TIME = "@Redfish.SettingsApplyTime"


class BiosShape(Struct, frozen=True):
    """One row. `waits`: the end of the path, behind Bios, of the settings object.

    `direct`: Bios itself is changed, and its settings object takes nothing. `whole`: the settings object lists all
    attributes, not those alone that wait. `times`: moments at which settings can be asked to apply. `jobs`: the manager
    whose job applies them, "" where the next start does.
    """

    waits: str = "Settings"
    direct: bool = False
    whole: bool = False
    times: tuple[str, ...] = ()
    jobs: str = ""


_SHAPES = {
    "dell": BiosShape(times=("OnReset", "AtMaintenanceWindowStart"), jobs="/Managers/iDRAC.Embedded.1"),
    "hpe": BiosShape("settings", whole=True),
    "lenovo": BiosShape("Pending", whole=True),
    "supermicro": BiosShape("SD", direct=True),
    "dgx_h100": BiosShape("SD"),
}


def shape_of(machine: Machine) -> BiosShape:
    """How this machine's BMC takes settings; an older iDRAC offers no apply times."""
    found = _SHAPES.get(machine.quirks.vendor, BiosShape())
    return BiosShape(found.waits, found.direct, found.whole, (), found.jobs) if machine.quirks.older else found


def documents(machine: Machine, bios: str) -> dict[str, Document]:
    """The Bios resource at this path, and its settings object."""
    shape = shape_of(machine)
    at = f"{bios}/{shape.waits}"
    held: Document = {"SettingsObject": link(at)}
    if shape.times:
        held["SupportedApplyTimes"] = list(shape.times)
    waiting = (machine.bios if shape.whole else {}) | machine.bios_pending
    return {bios: {"Attributes": dict(machine.bios), "@Redfish.Settings": held}, at: {"Attributes": waiting}}


def jobs(machine: Machine) -> dict[str, Document]:
    """The queue of jobs, where settings want one."""
    shape = shape_of(machine)
    if not shape.jobs:
        return {}
    place = f"{shape.jobs}/Jobs"
    state = "Scheduled" if machine.bios_scheduled else "Completed"
    members = [f"{place}/JID_{number}" for number in range(1, machine.bios_jobs + 1)]
    shown: dict[str, Document] = {
        path: {"JobType": "BIOSConfiguration", "JobState": state if path == members[-1] else "Completed"}
        for path in members
    }
    listed: Document = {"Members": [link(path) for path in members], "Members@odata.count": len(members)}
    return {place: listed, **shown}


def is_change(machine: Machine, within: str) -> bool:
    """Whether a PATCH within the system is one of BIOS settings, at the place that takes them."""
    shape = shape_of(machine)
    return within == ("Systems:Bios" if shape.direct else f"Systems:Bios/{shape.waits}")


def change(machine: Machine, body: Document, now: datetime) -> None:
    """Take settings. Raises BmcRefusalError (400)."""
    settings, shape = body.get("Attributes"), shape_of(machine)
    if not isinstance(settings, Mapping):
        raise BmcRefusalError(400, "The property Attributes is required.")
    asked = body.get(APPLY_TIME)
    if asked is not None and not shape.times:
        raise BmcRefusalError(400, f"The property {APPLY_TIME} is not in the list of valid properties.")
    moment = asked.get("ApplyTime") if isinstance(asked, Mapping) else None
    if moment is not None and moment not in shape.times:
        raise BmcRefusalError(400, f"The value {moment} for ApplyTime is not in the list of acceptable values.")
    if shape.jobs and machine.bios_scheduled:
        raise BmcRefusalError(400, "Pending configuration values are already committed.", "IDRAC.2.8.SYS011")
    machine.set_bios(dict(settings), now, applies=not shape.jobs or moment == "OnReset")


def schedule(machine: Machine, body: Document, now: datetime) -> None:
    """Take a job that applies what waits. Raises BmcRefusalError."""
    shape = shape_of(machine)
    if not shape.jobs:
        raise BmcRefusalError(405, "There is no queue of jobs.")
    target = str(body.get("TargetSettingsURI", ""))
    if not target.startswith(f"{ROOT}/Systems/") or not target.endswith(f"/Bios/{shape.waits}"):
        raise BmcRefusalError(400, f"The value {target!r} for TargetSettingsURI is not acceptable.")
    machine.schedule_bios(now)
