"""Logins of the BMCs of a node's DPUs, by address: what renewals came to, and which card showed itself there."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import bmc_login
from hostler.core.state.bmc_login import BmcLogin

RENEW_DPU = "renew_dpu_login"
"""The kind of operation, and the name of its recipe; its mode in a pool is that of the node's own BMC."""
DPU_LOGIN_FAILED = "bmc.dpu_login_failed"
"""The condition of a node of whose DPUs' BMCs one did not get its password."""


class DpuLogin(Struct, frozen=True):
    """The login of a DPU's BMC at an address.

    `serial` is of the card that showed itself there when the password was last proved, "" for never. `certificate` is
    the one that the BMC is known by, "" where bmc.json says by what else. `cards` are the serial numbers of the node's
    cards when the last renewal began: what came to nothing with these is not tried again with these. `others`: bmc.json
    gives it no password of its own, so that it is the site's to renew; nobody is called for that.
    """

    bmc: str
    login: BmcLogin = BmcLogin()
    serial: str = ""
    certificate: str = ""
    cards: tuple[str, ...] = ()
    others: bool = False

    def gives_up(self, cards: tuple[str, ...]) -> bool:
        """Whether no more is tried while the node has these cards, until a person says so."""
        return bmc_login.gives_up(self.login) and cards == self.cards


def login_at(known: tuple[DpuLogin, ...], bmc: str) -> DpuLogin:
    """The login at this address, an empty one where nothing is known of it."""
    return next((one for one in known if one.bmc == bmc), DpuLogin(bmc))


def with_login(known: tuple[DpuLogin, ...], one: DpuLogin, named: tuple[str, ...]) -> tuple[DpuLogin, ...]:
    """The logins with this one in its place; those of addresses that nobody names any more are dropped."""
    kept = [other for other in known if other.bmc != one.bmc and other.bmc in named]
    return tuple(sorted((*kept, one), key=lambda login: login.bmc))


def after_renewal(
    known: DpuLogin, cards: tuple[str, ...], at: datetime, outcome: tuple[str, str, Mapping[str, object]]
) -> DpuLogin:
    """The login after a renewal with these cards in the node; `outcome` is its result, detail and facts."""
    result, _, facts = outcome
    login, others = bmc_login.after_renewal(known.login, at, *outcome), bool(facts.get("others"))
    left = replace(known, login=login, cards=cards, others=others)
    if result != "done":
        return left
    certificate = str(facts.get("certificate", ""))[:64] or known.certificate
    return replace(left, serial=str(facts.get("serial", ""))[:128], certificate=certificate)
