"""Maintenance windows, and what tenants answered to them."""

from datetime import datetime

from msgspec import Struct

from hostler.core.state.scopes import Scope


class WindowAnswer(Struct, frozen=True):
    """A tenant's word on a maintenance window: acknowledged, or asked to begin at another moment (`rather`)."""

    tenant: str
    person: str
    at: datetime
    reason: str
    rather: datetime | None = None


class Window(Struct, frozen=True):
    """A maintenance window: pending disruption of `scope` may happen only inside one, where any is set.

    `answers` has the last answer of each tenant that gave one; they inform, and decide nothing.
    """

    id: str
    scope: Scope
    starts: datetime
    ends: datetime
    reason: str
    owner: str
    answers: tuple[WindowAnswer, ...] = ()
