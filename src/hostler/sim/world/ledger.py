"""Ledger of what really happened, written as it happened: the evidence that checkers judge by."""

from datetime import datetime

from msgspec import Struct


class Effect(Struct, frozen=True):
    """Change that an operation did to the world. `operation` is its id, `attempt` which send did it."""

    at: datetime
    node: str
    kind: str
    operation: str
    attempt: int
    journal_seq: int
    epoch: int


class ActualDisturbance(Struct, frozen=True):
    """A customer's live workload ended by an operation. `doomed`: a fault had already taken what it uses.

    `consent` says that its class (or its pool's agreement) allows it; `protective` that hardware was in danger;
    `invited` that it had come because a person lifted our cordon, `opened` since when Hostler knows of that.
    """

    at: datetime
    node: str
    workload: str
    by: str
    doomed: bool
    consent: bool
    protective: bool
    invited: bool = False
    opened: datetime | None = None


class MisdirectedAct(Struct, frozen=True):
    """A BMC was actuated for a node that it does not belong to. `machine` is the node whose BMC it really is."""

    at: datetime
    kind: str
    operation: str
    node: str
    machine: str


class Ledger:
    """Ledger of what happened to the world, in order.

    `untrusted` are ids of observations that user space made up, `forged` of those that a tenant with root put into the
    kernel's own log, `fences` what became of a deposed controller's
    attempts to write (True: refused), `trespasses` what it had a hand do all the same.
    """

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.disturbances: list[ActualDisturbance] = []
        self.answers: dict[tuple[str, int], list[str]] = {}
        self.untrusted: dict[str, None] = {}
        self.forged: dict[str, None] = {}
        self.fences: list[bool] = []
        self.trespasses: list[str] = []
        self.misdirected_acts: list[MisdirectedAct] = []
