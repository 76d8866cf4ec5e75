"""blast_radius: whom an act on an asset disturbs at most. Guards reserve all of it or nothing, in id order."""

from hostler.core.state.assets import Asset, AssetKind
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node, Radius
from hostler.core.state.scopes import DOMAINS, ActGroup, Scope

_DOMAIN_OF = {
    AssetKind.rack: "rack",
    AssetKind.nvlink_domain: "nvlink",
    AssetKind.power_shelf: "power",
    AssetKind.switch: "leaf",
}
"""Kinds of asset that *are* a failure domain: its members are the nodes that name it."""

_HARMLESS = {AssetKind.bmc}
"""Kinds whose remedies disturb nobody."""


def blast_radius(fleet: Fleet, name: str) -> Radius:
    """Nodes (sorted by id) and GPUs that an act on this node, asset, or domain ("rack:r1", "pool:train") disturbs.

    A switch tray disturbs its whole NVLink domain, a BMC nobody. An unknown name disturbs nobody known: the caller
    refuses it.
    """
    node = fleet.resolve(name)
    if node is not None:
        return _radius(fleet, [node])
    asset = fleet.assets.get(name)
    scopes = _domains(asset) if asset is not None else (Scope.of(name),)
    found = {member: None for scope in scopes for member in fleet.index.members(scope.shared)}
    return _radius(fleet, [fleet.nodes[member] for member in sorted(found)])


def domains_of(fleet: Fleet, target: str) -> tuple[Scope, ...]:
    """The failure domains that an act on this asset or domain takes whole; none for a node, a pool or a BMC."""
    asset = fleet.assets.get(target)
    if asset is not None:
        return _domains(asset)
    scope = Scope.of(target)
    return (scope,) if scope.is_domain else ()


def group_of(fleet: Fleet, target: str, what: str) -> ActGroup:
    """The group of an act on this target, told apart by `what`: of a rack, domain or asset with its scope."""
    return ActGroup(next(iter(domains_of(fleet, target)), None), what)


def resolve(fleet: Fleet, name: str) -> tuple[Scope, ...]:
    """The domain that a name means: as it stands, an asset's, or a rack's or NVLink domain's own; none: unknown."""
    domains = domains_of(fleet, name) or tuple(Scope(kind, name) for kind in DOMAINS)
    return tuple(domain for domain in domains if not fleet.index.lacks(domain.shared))[:1]


def _domains(asset: Asset) -> tuple[Scope, ...]:
    if asset.kind in _HARMLESS:
        return ()
    return (Scope(_DOMAIN_OF[asset.kind], asset.id),) if asset.kind in _DOMAIN_OF else asset.domains


def _radius(fleet: Fleet, nodes: list[Node]) -> Radius:
    skus = fleet.configuration.skus
    gpus = sum(skus[node.sku].gpus for node in nodes if node.sku in skus)
    return Radius(tuple(node.id for node in nodes), gpus)
