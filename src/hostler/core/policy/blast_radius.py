"""blast_radius: whom an act on an asset disturbs at most. Guards reserve all of it or nothing, in id order."""

from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Asset, AssetKind, Node, Radius

_DOMAIN_OF = {
    AssetKind.rack: "rack",
    AssetKind.nvlink_domain: "nvlink",
    AssetKind.power_shelf: "power",
    AssetKind.switch: "leaf",
}
"""Kinds of asset that *are* a failure domain: its members are the nodes that name it."""

KINDS = ("rack", "nvlink", "power", "leaf")
"""Kinds of domain that a bare name is looked for among, in this order."""

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
    keys = _keys(asset) if asset is not None else [_key(name)]
    found = {member: None for key in keys for member in fleet.index.members(key)}
    return _radius(fleet, [fleet.nodes[member] for member in sorted(found)])


def domains_of(fleet: Fleet, target: str) -> tuple[str, ...]:
    """The failure domains that an act on this asset or domain takes whole; none for a node, a pool or a BMC."""
    asset = fleet.assets.get(target)
    if asset is not None:
        return tuple(key.removeprefix("member:") for key in _keys(asset))
    return (target,) if ":" in target and not target.startswith("pool:") else ()


def group_of(fleet: Fleet, target: str, what: str) -> str:
    """The group of an act on this rack, domain or asset, told apart by `what`; "" where the target is no domain."""
    domains = domains_of(fleet, target)
    return f"{domains[0]}/{what}" if domains else ""


def resolve(fleet: Fleet, name: str) -> tuple[str, ...]:
    """The domain that a name means: as it stands, an asset's, or a rack's or NVLink domain's own; none: unknown."""
    domains = domains_of(fleet, name) or tuple(f"{kind}:{name}" for kind in KINDS)
    return tuple(domain for domain in domains if not fleet.index.lacks(f"member:{domain}"))[:1]


def _keys(asset: Asset) -> list[str]:
    if asset.kind in _HARMLESS:
        return []
    if asset.kind in _DOMAIN_OF:
        return [f"member:{_DOMAIN_OF[asset.kind]}:{asset.id}"]
    return [f"member:{domain}" for domain in asset.domains]


def _key(name: str) -> str:
    return name if name.startswith("pool:") else f"member:{name}"


def _radius(fleet: Fleet, nodes: list[Node]) -> Radius:
    skus = fleet.configuration.skus
    gpus = sum(skus[node.sku].gpus for node in nodes if node.sku in skus)
    return Radius(tuple(node.id for node in nodes), gpus)
