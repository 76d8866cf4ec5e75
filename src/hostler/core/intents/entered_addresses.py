"""Addresses at which Hostler enters with a password: BMCs, BMCs of DPUs and PDUs, and who has which. Pure."""

from collections import defaultdict
from collections.abc import Container, Iterable

from msgspec import Struct

from hostler.core.state.assets import DPU_BMC, OUTLET
from hostler.core.state.fleet import Fleet

BMC, ASSET, PDU = "bmc", "asset", "pdu"
KINDS = {"bmc": BMC, "outlets": OUTLET, "dpu_bmcs": DPU_BMC}
"""Field of an inventory → the kind of binding that holds what it names."""
_BOUND = frozenset(KINDS.values())
_PORTS = {"https": ":443", "http": ":80"}
_WORDS = {BMC: "the BMC of", ASSET: "the BMC of", DPU_BMC: "a DPU's BMC of", PDU: "a PDU of", OUTLET: "an outlet of"}
_AGAINST = {BMC: (DPU_BMC, PDU), DPU_BMC: (BMC, ASSET, PDU), PDU: (BMC, DPU_BMC)}
"""Kinds that an address cannot be beside this one, whoever has it. A shelf with a BMC may have outlets."""


class Held(Struct, frozen=True):
    """An address as somebody has it: a node, an asset, or an entry of a list by its place."""

    holder: str
    kind: str

    @property
    def text(self) -> str:
        """The address's use, in words."""
        return f"{_WORDS[self.kind]} {self.holder}"


class EnteredAddresses:
    """Addresses and their holders, however an address is written."""

    def __init__(self) -> None:
        self._held: dict[str, list[Held]] = defaultdict(list)

    @classmethod
    def of(cls, fleet: Fleet, asked: Iterable[str]) -> "EnteredAddresses":
        """Addresses of all nodes and assets that are where one of the addresses asked about is."""
        found, origins = cls(), {origin(address) for address in asked}
        for node_id in fleet.nodes if origins else ():
            for bound in fleet.nodes[node_id].bindings:
                if bound.until is None and bound.kind in _BOUND:
                    found._keep(node_id, bound.kind, bound.value.split(), origins)
        for asset in fleet.assets.values() if origins else ():
            found._keep(asset.id, ASSET, asset.binding(BMC).split(), origins)
        return found

    def _keep(self, holder: str, kind: str, addresses: Iterable[str], origins: Container[str]) -> None:
        for address in addresses:
            if origin(address) in origins:
                self.add(holder, kind, (address,))

    def add(self, holder: str, kind: str, addresses: Iterable[str]) -> None:
        """Remember that these are the holder's."""
        for address in addresses:
            if kind == OUTLET:
                self._held[written_once(OUTLET, address)].append(Held(holder, OUTLET))
            self._held[origin(address)].append(Held(holder, PDU if kind == OUTLET else kind))

    def clash(self, holder: str, kind: str, address: str) -> Held | None:
        """The holder who has the address already, or as something that it cannot be as well; None for nobody."""
        at = origin(address)
        if kind == OUTLET and (found := _first(self._held.get(written_once(OUTLET, address), ()), holder, OUTLET)):
            return found
        if kind == DPU_BMC and (found := _first(self._held.get(at, ()), holder, DPU_BMC)):
            return found
        others = _AGAINST[PDU if kind == OUTLET else kind]
        return min((h for h in self._held.get(at, ()) if h.kind in others), key=lambda h: h.holder, default=None)


def names_of(named: object, field: str) -> tuple[str, ...]:
    """The names that a field of a node's description gives: several, one or none."""
    found = getattr(named, field)
    return found if isinstance(found, tuple) else (found,) if found else ()


def origin(address: str) -> str:
    """Scheme, host and port of an address, written in one way. Asked of every node, so without a parser of URLs."""
    scheme, _, rest = address.casefold().partition("://")
    host = rest.partition("#")[0].partition("/")[0]
    return f"{scheme}://{host.removesuffix(_PORTS.get(scheme, '#'))}"


def written_once(kind: str, address: str) -> str:
    """An outlet's or a BMC's address, written in one way."""
    return f"{origin(address)}#{address.partition('#')[2].rstrip('/')}" if kind == OUTLET else origin(address)


def _first(held: Iterable[Held], but: str, kind: str) -> Held | None:
    return min((h for h in held if h.kind == kind and h.holder != but), key=lambda h: h.holder, default=None)
