"""Accounts of an emulated BMC: who may enter, what it says of them, and the ways in which it lies about passwords."""

from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from hostler.sim.bmc.emulated_machine import BmcRefusalError
from hostler.sim.bmc.resource_parts import ROOT, Document, link

SERVICE = "/AccountService"

Lie = Literal["", "forgets", "says_error", "resets_before", "resets_after", "late", "keeps_both"]
"""Fate of a new password: it is taken; accepted and forgotten; refused in a 200; the BMC restarts before or
after it is kept; it counts only after a restart of the BMC; or the one before enters too."""


class Account(Struct):
    """One slot. `change`: nothing but its own password may be changed before it has a new one."""

    id: str
    username: str
    password: str
    enabled: bool = True
    change: bool = False
    locked: bool = False
    wrong: int = 0


class AccountRules(Struct, frozen=True):
    """Demands of a BMC. `threshold` wrong passwords lock an account; with 0 it says so, and locks after three.

    `shows`: whether it says its rules. `forbids`: characters that no password may have. `demands`: no change without
    If-Match. `echoes`: its refusals quote what they refuse.
    """

    threshold: int = 3
    shortest: int = 8
    longest: int = 20
    shows: bool = True
    forbids: str = ""
    demands: bool = False
    echoes: bool = False


class BmcAccounts(Struct):
    """The slots, and how many wrong logins there were in all.

    `fixed`: slots are never deleted, only disabled. `keeps`: names that it says yes to removing, and keeps.
    """

    slots: list[Account] = field(default_factory=lambda: [Account("1", "root", "factory")])
    rules: AccountRules = AccountRules()
    lie: Lie = ""
    pending: dict[str, str] = field(default_factory=dict)
    wrong: int = 0
    changes: int = 0
    lockouts: int = 0
    restart: Callable[[], None] = lambda: None
    fixed: bool = False
    keeps: frozenset[str] = frozenset()

    def admit(self, username: str, password: str, path: str) -> int:
        """Status with which a login is turned away, 0 where it is let in. Wrong ones count towards a lock-out."""
        mine = [slot for slot in self.slots if slot.username == username and slot.enabled]
        entered = next((slot for slot in mine if slot.password == password and not slot.locked), None)
        if entered is None:
            self._count(mine)
            return 401
        for slot in mine:
            slot.wrong = 0
        own = path.startswith(f"{ROOT}{SERVICE}/Accounts")
        return 403 if entered.change and not own else 0

    def _count(self, slots: list[Account]) -> None:
        self.wrong += 1
        for slot in slots:
            slot.wrong += 1
            if slot.wrong >= (self.rules.threshold or 3) and not slot.locked:
                slot.locked = True
                self.lockouts += 1

    def show(self, inside: str) -> Document | None:
        """The resource at a path behind ROOT, None where there is none."""
        if inside == SERVICE:
            return self._service()
        if inside == f"{SERVICE}/Accounts":
            return {"Members": [link(f"{SERVICE}/Accounts/{slot.id}") for slot in self.slots]}
        found = next((slot for slot in self.slots if inside == f"{SERVICE}/Accounts/{slot.id}"), None)
        return self._account(found) if found else None

    def _service(self) -> Document:
        rules: Document = {
            "MinPasswordLength": self.rules.shortest,
            "MaxPasswordLength": self.rules.longest,
            "AccountLockoutThreshold": self.rules.threshold,
        }
        return {"Accounts": link(f"{SERVICE}/Accounts")} | (rules if self.rules.shows else {})

    def _account(self, slot: Account) -> Document:
        body: Document = {"Id": slot.id, "UserName": slot.username, "Enabled": slot.enabled, "Locked": slot.locked}
        return body | {
            "PasswordChangeRequired": slot.change,
            "@odata.etag": f'"{slot.id}-{self.changes}"',
            "Password": None,
        }

    def remove(self, inside: str) -> None:
        """Delete an account, as far as this BMC does. Raises BmcRefusalError."""
        slot = next((one for one in self.slots if inside == f"{SERVICE}/Accounts/{one.id}"), None)
        if slot is None or self.fixed:
            raise BmcRefusalError(404 if slot is None else 405, "This account cannot be deleted.")
        if slot.username not in self.keeps:
            self.slots.remove(slot)

    def change(self, inside: str, body: Document, headers: Mapping[str, str]) -> Document | None:
        """Take a new password, as far as this BMC does. A document: 200 with an error in it. Raises BmcRefusalError."""
        slot = next((one for one in self.slots if inside == f"{SERVICE}/Accounts/{one.id}"), None)
        password = body.get("Password")
        if slot is not None and body == {"Enabled": False}:
            slot.enabled = slot.username in self.keeps
            return None
        if slot is None or not isinstance(password, str):
            raise BmcRefusalError(404 if slot is None else 400, "Only the Password of an account can be changed.")
        if self.rules.demands and not any(name.lower() == "if-match" for name in headers):
            raise BmcRefusalError(428, "The request lacks the If-Match header.")
        self._check(password)
        if self.lie == "says_error":
            return {"error": {"code": "Base.1.12.GeneralError", "message": "The password was not changed."}}
        if self.lie == "resets_before":
            self.restart()
        elif self.lie == "late":
            self.pending[slot.id] = password
        elif self.lie != "forgets":
            if self.lie == "keeps_both":
                self.slots.append(replace(slot, id=f"{slot.id}-old"))
            slot.password, slot.change = password, False
            self.changes += 1
        if self.lie == "resets_after":
            self.restart()
        return None

    def _check(self, password: str) -> None:
        rules = self.rules
        if rules.shortest <= len(password) <= rules.longest and not set(rules.forbids) & set(password):
            return
        quoted = f" {password!r}" if rules.echoes else ""
        raise BmcRefusalError(400, f"The password{quoted} does not meet the password policy.")

    def restarted(self) -> None:
        """Count from now on what waited for a restart of the BMC."""
        for slot in self.slots:
            slot.password = self.pending.pop(slot.id, slot.password)

    def factory_reset(self) -> None:
        """Another board: its vendor's login, and nothing of what was set."""
        self.slots = [Account("1", "root", "factory")]
        self.pending.clear()
