"""One operation at one verified system: what is asked, what is remembered of it, and how its outcome is told."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.durations import duration
from hostler.core.state.model import Facts, Operation, Outcome
from hostler.drivers.redfish import equipment, wire
from hostler.drivers.redfish.client import RedfishClient


class SentOperation(Struct):
    """Memory of a sent operation: when, its task, the BMC's last restart, was it away since, and from when.

    `right_since` and `wrong_since`: since when versions have read right without a break, and when one first read wrong.
    """

    sent: datetime | None = None
    task: str = ""
    last_reset: str = ""
    away: bool = False
    away_since: datetime | None = None
    right_since: datetime | None = None
    wrong_since: datetime | None = None


class FeedingOutlet(Struct, frozen=True):
    """An outlet that is recorded for a machine: its PDU, and its path there."""

    pdu: RedfishClient
    path: str

    @property
    def name(self) -> str:
        """Address as people record it."""
        return f"{self.pdu.origin}#{self.path}"


class OperationRequest(Struct, frozen=True):
    """One operation on one verified system, now. `image` is the verified image that is pushed, None for none.

    `outlets` are those that feed the machine, `names` by which people may have labelled them.
    """

    client: RedfishClient
    system: wire.System
    operation: Operation
    memory: SentOperation
    now: datetime
    image: BinaryIO | None = None
    outlets: tuple[FeedingOutlet, ...] = ()
    names: tuple[str, ...] = ()

    def outcome(self, result: str, detail: str = "", facts: Facts | None = None) -> Outcome:
        """The outcome, with what is known of the system among its facts."""
        known: Facts = {"serial": self.system.serial, "power": self.system.power or "unknown"}
        return Outcome(
            self.operation.id,
            self.operation.node,
            result,
            detail,
            known | (facts or {}),
            attempt=self.operation.attempt,
        )

    def sending(self) -> None:
        """Note the moment before something is sent: whatever becomes of the reply, it may land from now on."""
        self.memory.sent = self.now

    @property
    def may_land(self) -> bool:
        """Whether what was sent may still show its effect."""
        since = self.memory.sent or self.operation.started
        return self.now < min(since + timedelta(seconds=LANDS_S[self.operation.kind]), self.operation.deadline)

    def not_seen(self, detail: str, facts: Facts | None = None) -> Outcome:
        """Result for an effect that is not there: unknown while it may still land, not_done afterwards."""
        if self.may_land:
            lands_s = LANDS_S[self.operation.kind]
            return self.outcome("unknown", f"{detail}; it may take {duration(lands_s)} to take effect", facts)
        return self.outcome("not_done", detail, facts)

    async def again(self) -> "OperationRequest":
        """The same with the system read once more."""
        system = await equipment.machine(self.client, self.system.path)
        return replace(self, system=system)


Act = Callable[[OperationRequest], Awaitable[Outcome]]
LANDS_S = {
    "power_on": 30.0,
    "power_off": 30.0,
    "eject_boot_medium": 30.0,
    "update_firmware": 30.0,
    "write_bios_settings": 30.0,
    "reset_bmc": 60.0,
    "ac_cycle": 120.0,
    "outlet_cycle": 420.0,
    "unplug": 86_400.0,
}
"""How long after sending an effect may still appear. Power-off was seen to take 1–11 s; a BMC answers for a while
before it goes away to restart. For a technician the operation's own deadline comes first."""


class OperationSteps(Struct, frozen=True):
    """How a kind is done and looked at; the same function for both where the reply is the effect."""

    act: Act
    look: Act
    nameless: bool = False
