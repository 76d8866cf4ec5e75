"""How each vendor's BMC is entered: its accounts as they come from the factory, their rules, and its certificate.

Facts after NVIDIA's libredfish (the vendor modules and captures of real machines in its `tests/mockups`), OpenBMC's
bmcweb (`account_service.hpp`) and the sources of each way to a certificate in `docs/redfish-vendors.md`.
"""

from collections.abc import Callable

from msgspec import Struct

from hostler.sim.bmc.bmc_accounts import Account, AccountRules, BmcAccounts
from hostler.sim.bmc.bmc_certificates import BmcCertificates
from hostler.sim.bmc.tls_certificates import Certificate
from hostler.sim.bmc.vendors import VENDORS

_FACTORY = "factory"
_KEYS = ("EC", "RSA")


class VendorEntry(Struct, frozen=True):
    """One row. `username` and `slot` are the factory account's; `slots`: so many there are, where none can be added.

    `change`: nothing may be done before it has a new password. `certified` makes the certificates of a web server.
    """

    username: str
    slot: str
    rules: AccountRules = AccountRules()
    slots: int = 0
    change: bool = False
    certified: Callable[[Certificate, str], BmcCertificates] = BmcCertificates

    def accounts(self) -> BmcAccounts:
        """The accounts of a BMC that comes from the factory."""
        mine = Account(self.slot, self.username, _FACTORY, change=self.change)
        empty = [Account(str(number), "", "", enabled=False) for number in range(1, self.slots + 1)]
        listed = [mine, *(one for one in empty if one.id != self.slot)]
        return BmcAccounts(sorted(listed, key=lambda one: one.id), self.rules, fixed=bool(self.slots))


def certificates(vendor: str, shown: Certificate) -> BmcCertificates:
    """The web server's certificate of this vendor's BMC, and how it takes another."""
    return ENTRIES[vendor].certified(shown, VENDORS[vendor].managers[0])


def _dell(shown: Certificate, manager: str) -> BmcCertificates:
    return BmcCertificates(shown, manager, applies="restart", uri_form="string")


def _hpe(shown: Certificate, manager: str) -> BmcCertificates:
    return BmcCertificates(shown, manager, way="ilo", applies="restart", slow=2)


def _supermicro(shown: Certificate, manager: str) -> BmcCertificates:
    return BmcCertificates(shown, manager, applies="restart")


def _openbmc(shown: Certificate, manager: str) -> BmcCertificates:
    return BmcCertificates(shown, manager, keys=_KEYS, takes=_KEYS)


_NVIDIA = VendorEntry("root", "root", AccountRules(), change=True, certified=_openbmc)
ENTRIES = {
    "dell": VendorEntry("root", "2", AccountRules(longest=40), slots=16, certified=_dell),
    "hpe": VendorEntry("Administrator", "1", AccountRules(shows=False), certified=_hpe),
    "lenovo": VendorEntry("USERID", "1", AccountRules(shortest=10, longest=32)),
    "supermicro": VendorEntry("ADMIN", "2", AccountRules(demands=True), certified=_supermicro),
    "dgx_h100": VendorEntry("admin", "2", AccountRules(threshold=0, shortest=13, demands=True)),
    "gh200": VendorEntry("root", "root", AccountRules(shortest=13), certified=_openbmc),
    "gb200": _NVIDIA,
    "gb300": _NVIDIA,
    "bluefield3": VendorEntry("root", "root", AccountRules(shortest=12), certified=_openbmc),
    "nvswitch": _NVIDIA,
    "openbmc": VendorEntry("root", "root", AccountRules(), certified=_openbmc),
}
"""Vendor → how its BMC is entered."""
