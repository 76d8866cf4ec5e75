"""Nouns of an InfiniBand subnet: its managers, partition keys and routing, as they are and as its design wants them.

A GUID is 16 hexadecimal digits, of the port through which a manager speaks. A partition is its 15 bits as "0x7fff",
without the bit of full membership.
"""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class ManagerState(StrEnum):
    """State of a subnet manager, as SMInfo numbers them from 0."""

    not_active = "not_active"
    discovering = "discovering"
    standby = "standby"
    master = "master"


class SubnetManager(Struct, frozen=True):
    """A subnet manager that the subnet knows. `priority` is 0 to 15: the highest is to be master."""

    guid: str
    priority: int
    state: ManagerState


class ManagerDesign(Struct, frozen=True, forbid_unknown_fields=True):
    """Managers that a subnet is to have: by `guids`, () for any, and so many that stand by."""

    guids: tuple[str, ...] = ()
    min_standby: int = 0


class SubnetDesign(Struct, frozen=True, forbid_unknown_fields=True):
    """Statements of a design on its subnet. Of what it does not state nothing is found: None, () and "".

    `partitions`: all that its ports bear. `routing`: the engine as opensm names it ("ftree").
    """

    subnet_manager: ManagerDesign | None = None
    partitions: tuple[str, ...] = ()
    routing: str = ""


class SubnetFacts(Struct, frozen=True):
    """The known facts of a subnet. None and "" where it was never told. `managers`: the master first, then by GUID."""

    managers: tuple[SubnetManager, ...] | None = None
    partitions: tuple[str, ...] | None = None
    routing: str = ""

    @property
    def master(self) -> SubnetManager | None:
        """The manager that is master."""
        return next((one for one in self.managers or () if one.state is ManagerState.master), None)

    @property
    def standby(self) -> tuple[SubnetManager, ...]:
        """The managers that stand by."""
        return tuple(one for one in self.managers or () if one.state is ManagerState.standby)


class NoticeOrigin(StrEnum):
    """Writer of a notice: a subnet manager in its log, or UFM in its list of events."""

    manager = "manager"
    ufm = "ufm"


class SubnetNotice(Struct, frozen=True):
    """Notice that a subnet's devices told its manager, or UFM noted: a hint where to look, and no finding.

    `number`: the trap's (InfiniBand specification, 14.2.5.1), or UFM's event type; `said`: its name there; `about`: the
    sender or object; `at`: the time as it is written there, by that host's clock.
    """

    origin: NoticeOrigin
    number: int
    said: str
    about: str = ""
    at: str = ""


class SubnetReading(Struct, frozen=True):
    """One look at a subnet. What could not be read whole is not in `facts`, and `why` says why; nothing follows of it.

    `began`: when the look began. `notices`: the last ones heard since the controller began to look, the latest first.
    """

    fabric: str
    began: datetime
    facts: SubnetFacts = SubnetFacts()
    why: tuple[str, ...] = ()
    notices: tuple[SubnetNotice, ...] = ()
