"""Work that a person asked of a machine's provisioner (an Ironic: inspect, deploy, clean) or provider (replace)."""

from datetime import datetime

from msgspec import Struct

from hostler.core.state.operations import CleanMachine, DeployImage, InspectMachine, ReplaceMachine

KINDS = ("inspect_machine", "deploy_image", "clean_machine", "replace_machine")
"""Kinds of operation, and names of their recipes."""
PROVISIONER = "ironic"


class MachineWork(Struct, frozen=True):
    """One piece of work. `state` is asked, begun, done, failed, refused or timed_out, `detail` what was said of it.

    `told` is what an inspection found, name → value. It is tried once: what failed is a person's.
    """

    act: InspectMachine | DeployImage | CleanMachine | ReplaceMachine
    by: str
    why: str
    asked_at: datetime
    state: str = "asked"
    detail: str = ""
    ended_at: datetime | None = None
    told: dict[str, str] = {}
