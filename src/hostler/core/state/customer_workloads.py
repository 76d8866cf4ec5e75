"""Workloads: customers' work on a node as its scheduler tells it, and the consent to end it."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class WorkClass(StrEnum):
    """How a customer's workload may be disturbed."""

    uninterruptible = "uninterruptible"
    graceful = "graceful"
    interruptible = "interruptible"
    infrastructure = "infrastructure"


class Workload(Struct, frozen=True):
    """A customer's running work on one node, as its scheduler tells it.

    `parts` are the slots it uses ("gpu0" …); None where the scheduler does not say, which never means doomed.
    `held_by`: what keeps it from being ended though it may be (a disruption budget, its own grace), "" for nothing.
    `check`: the idle check that it is, by its operation; "" for everybody else's work. `progress`: how far its job is.
    `owner` is who is asked for consent, "" for the pool's owner. `agreed_after_s`: it may be ended when a drain has
    waited for it so long, as those whose it is have agreed; None: they have not. `uid` is what the node itself knows it
    by (a pod's UID), "" where nothing of the kind. `began`: since when it runs here, by its scheduler's clock; None
    where that is not said.
    """

    id: str
    tenant: str
    work_class: WorkClass
    parts: tuple[str, ...] | None = None
    job: str = ""
    image: str = ""
    gpu_hours_at_stake: float = 0.0
    held_by: str = ""
    check: str = ""
    progress: str = ""
    owner: str = ""
    agreed_after_s: float | None = None
    uid: str = ""
    began: datetime | None = None


class ConsentedWork(Struct, frozen=True):
    """A workload that may be ended for one remedy on its node: who said so, and the ticket that asked."""

    workload: str
    remedy: str
    ticket: str
    person: str
    at: datetime
