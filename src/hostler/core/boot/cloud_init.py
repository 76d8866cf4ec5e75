"""cloud-init's data for one boot (NoCloud): layers of site, SKU, pool and node, and what Hostler itself adds. Pure."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import yaml
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.boot.agent_install import agent_layer
from hostler.core.state.boot import CloudInitLayer
from hostler.core.state.bootstrap_kubeconfig import (
    BOOTSTRAP_FILE,
    REGISTRATION_FILE,
    bootstrap_kubeconfig,
    registering_cordoned,
)
from hostler.core.state.fleet import Fleet
from hostler.core.state.join_offer import JoinOffer
from hostler.core.state.model import Node
from hostler.core.state.node_places import placed

OFFER_FILE = "/etc/hostler/join.json"
"""File of the node's `JoinOffer`: the API server's address, and the join token; only root reads it."""

LISTS = ("write_files", "runcmd")
"""Lists of cloud-config to which each layer adds; Hostler's own part comes last."""

PARTS = ("user_data", "vendor_data", "meta_data", "network")
DOCUMENTS = {
    "user-data": "user_data",
    "vendor-data": "vendor_data",
    "meta-data": "meta_data",
    "network-config": "network",
}
"""cloud-init's name of each document, and the part of a layer that it is made of."""

Origins = dict[str, str]
"""Path of a value ("users.0.name") → the layer that it comes from."""


class SeedDocuments(Struct, frozen=True):
    """The four parts of cloud-init's data as plain values, each with where its values come from."""

    parts: dict[str, dict[str, Any]]
    origins: dict[str, Origins]

    def text(self, document: str) -> str:
        """A document as cloud-init fetches it, by cloud-init's name."""
        part = DOCUMENTS[document]
        head = "#cloud-config\n" if part in ("user_data", "vendor_data") else ""
        return head + yaml.safe_dump(self.parts[part], sort_keys=True, allow_unicode=True)


def compose(fleet: Fleet, node: Node, own: str = "", join: JoinOffer | None = None) -> SeedDocuments:
    """The node's data. `own` is where this boot asks, "" in a preview; `join` is what lets it into its cluster."""
    parts: dict[str, dict[str, Any]] = {part: {} for part in PARTS}
    origins: dict[str, Origins] = {part: {} for part in PARTS}
    for name, layer in _layers(fleet, node, own, join):
        for part in PARTS:
            _merge(parts[part], getattr(layer, part), name, origins[part], "")
    parts["network"] = _placed(node, parts["network"])
    return SeedDocuments(parts, origins)


SECRET_KEYS = frozenset({"passwd", "hashed_passwd", "plain_text_passwd", "password", "chpasswd", "ssh_keys", "token"})
"""Keys of cloud-config (modules users, set-passwords, ssh and others) whose values are secrets."""
VEILED = "(not shown)"
_NO_OFFER = JoinOffer("", "", "", "", "", "", datetime.min.replace(tzinfo=UTC), "TAINT")
"""Stands in a preview for the offer of a boot, of which people read where it is laid down."""


def veiled(seed: SeedDocuments) -> SeedDocuments:
    """The data for people to read: what stands under a key of SECRET_KEYS, and contents of files, are not shown."""
    return SeedDocuments({part: _redacted(value) for part, value in seed.parts.items()}, seed.origins)


def preview(fleet: Fleet, node: Node) -> SeedDocuments:
    """The next boot's data for people to read: all that Hostler adds, without that boot's secret and token."""
    boots = fleet.configuration_of(node).boot
    if boots is None:
        return veiled(compose(fleet, node))
    join = replace(_NO_OFFER, cluster=boots.cluster) if boots.cluster else None
    return veiled(compose(fleet, node, f"{boots.url}/n/{node.id}/{VEILED}", join))


def _redacted(value: Any) -> Any:
    if isinstance(value, dict):
        hidden = {"content"} if "path" in value else set()
        return {key: VEILED if key in SECRET_KEYS | hidden else _redacted(one) for key, one in value.items()}
    return [_redacted(one) for one in value] if isinstance(value, list) else value


def _layers(fleet: Fleet, node: Node, own: str, join: JoinOffer | None) -> Iterator[tuple[str, CloudInitLayer]]:
    """The layers from the most general to the node's own; Hostler's facts first, its acts last."""
    yield "hostler", _facts(node)
    boots = fleet.configuration_of(node).boot
    if boots is not None:
        layers = boots.cloud_init
        yield "site", layers.site
        for kind, named, name in (
            ("sku", layers.skus, node.sku),
            ("pool", layers.pools, node.pool),
            ("node", layers.nodes, node.id),
        ):
            if name in named:
                yield f"{kind} {name}", named[name]
    yield "hostler", _acts(own, join, agent_layer(boots, node, own) if boots is not None else {})


def _facts(node: Node) -> CloudInitLayer:
    """Facts of the node; layers may say otherwise."""
    plan = node.plan.id if node.plan is not None else node.id
    macs = sorted(b.value for b in node.bindings if b.kind == "mac" and b.until is None)
    links = {f"boot{n}": {"match": {"macaddress": mac}, "dhcp4": True, "optional": n > 0} for n, mac in enumerate(macs)}
    name = node.binding("hostname") or node.id
    return CloudInitLayer(
        meta_data={"instance-id": plan, "local-hostname": name},
        network={"version": 2, **({"ethernets": links} if links else {})},
    )


def _acts(own: str, join: JoinOffer | None, user: dict[str, Any]) -> CloudInitLayer:
    if join is not None:
        content = msgspec.json.format(msgspec.json.encode(join), indent=2).decode()
        own_config = bootstrap_kubeconfig(join.cluster, join.server, join.ca, join.token)
        files = ((OFFER_FILE, content), (BOOTSTRAP_FILE, own_config))
        offer = [{"path": path, "permissions": "0600", "content": text} for path, text in files]
        if join.taint:
            offer.append(
                {"path": REGISTRATION_FILE, "content": registering_cordoned(join.taint), "permissions": "0644"}
            )
        user["write_files"] = [*user.get("write_files", ()), *offer]
    if own:
        user["phone_home"] = {"url": f"{own}/home", "post": ["instance_id", "hostname"], "tries": 10}
    return CloudInitLayer(user_data=user)


def _merge(into: dict[str, Any], more: Mapping[str, Any], layer: str, origins: Origins, path: str) -> None:
    """Mappings are merged, LISTS added to, everything else is replaced by the later layer."""
    for key, value in more.items():
        where = f"{path}{key}"
        before = into.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            _merge(before, value, layer, origins, f"{where}.")
            continue
        if where in LISTS and isinstance(before, list) and isinstance(value, list):
            into[key] = [*before, *value]
            origins |= {f"{where}.{len(before) + n}": layer for n in range(len(value))}
            continue
        for old in [one for one in origins if one == where or one.startswith(f"{where}.")]:
            del origins[old]
        into[key] = _copied(value)
        origins.update(dict.fromkeys(_leaves(value, where), layer))


def _placed(node: Node, value: Any) -> Any:
    """The network with the node's place and name where placeholders stand: rails of a SKU differ by rack and unit."""
    if isinstance(value, dict):
        return {_placed(node, key): _placed(node, one) for key, one in value.items()}
    if isinstance(value, list):
        return [_placed(node, one) for one in value]
    return placed(node, value) if isinstance(value, str) else value


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    return [_copied(one) for one in value] if isinstance(value, list | tuple) else value


def _leaves(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from _leaves(one, f"{path}.{key}")
    elif isinstance(value, list | tuple) and path in LISTS:
        yield from (f"{path}.{n}" for n in range(len(value)))
    else:
        yield path
