"""AccountService → what a BMC demands of passwords, and which of its slots is an account. Pure."""

from msgspec import Struct

from hostler.drivers.redfish.tolerant_json import (
    MEND_BMC,
    Document,
    WireError,
    child,
    document,
    link,
    number,
    objects,
    text,
    truth,
)

CHANGE_FIRST = "PasswordChangeRequired"
"""In the message of a BMC that lets somebody in and demands a new password before anything else (DSP0266, 13.2.6)."""


class PasswordRules(Struct, frozen=True):
    """Demands of an AccountService; 0 where it does not say. `lockout`: so many wrong passwords lock an account."""

    accounts: str = ""
    shortest: int = 0
    longest: int = 0
    lockout: int = 0


class AccountSlot(Struct, frozen=True):
    """One slot of a BMC's accounts."""

    path: str
    username: str
    enabled: bool
    etag: str = ""


def password_rules(raw: bytes) -> PasswordRules:
    """The rules of an AccountService. Raises WireError where it has no accounts."""
    doc = document(raw, "account service")
    accounts = link(doc, "Accounts")
    if not accounts:
        raise WireError(f"the BMC's AccountService has no link to Accounts; {MEND_BMC}")
    found = (
        int(number(doc, name) or 0) for name in ("MinPasswordLength", "MaxPasswordLength", "AccountLockoutThreshold")
    )
    shortest, longest, lockout = (max(0, value) for value in found)
    return PasswordRules(accounts, shortest, longest, lockout)


def slot(doc: Document, path: str) -> AccountSlot:
    """One account, read at `path`; one that does not say whether it is enabled is."""
    return AccountSlot(path, text(doc, "UserName"), truth(doc, "Enabled") is not False, text(doc, "@odata.etag"))


def demands_change(raw: bytes) -> bool:
    """Whether a refusal says that the password was right and has to be changed first."""
    try:
        error = child(document(raw), "error")
    except WireError:
        return False
    said = [text(error, "code"), *(text(item, "MessageId") for item in objects(error, "@Message.ExtendedInfo"))]
    return any(CHANGE_FIRST in one for one in said)


def is_error(raw: bytes) -> bool:
    """Whether the body of a success is an error all the same."""
    try:
        return bool(child(document(raw), "error"))
    except WireError:
        return False
