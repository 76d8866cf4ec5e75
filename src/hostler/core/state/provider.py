"""Nodes that somebody else owns: the binding that names their provider and instance, and its maintenance notices."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from hostler.core.state.assets import PROVIDER
from hostler.core.state.model import Node

"""Kind of binding, "NAME/INSTANCE"; the node's provisioner where the provider boots and replaces it."""
_BINDING = re.compile(r"[a-z0-9][a-z0-9-]{0,30}/[A-Za-z0-9][A-Za-z0-9._:-]{0,94}")


class Instance(Struct, frozen=True):
    """A node as its provider knows it."""

    provider: str
    id: str


class MaintenanceNotice(Struct, frozen=True):
    """Maintenance that a provider has scheduled for some of its instances."""

    id: Annotated[str, Meta(min_length=1, max_length=100)]
    instances: Annotated[tuple[str, ...], Meta(max_length=1_000)]
    starts: Annotated[datetime, Meta(tz=True)]
    ends: Annotated[datetime, Meta(tz=True)]
    text: str = ""


class ProviderLook(Struct, frozen=True):
    """The last look at a provider: when, why it gave no answer ("" where it did), and notices of its last answer.

    `host` is that of its service; `at` None: it was not asked yet.
    """

    host: str
    at: datetime | None = None
    failure: str = ""
    notices: int = 0


def instance_of(node: Node) -> Instance | None:
    """The node's instance, None where no provider owns it."""
    name, slash, instance = node.binding(PROVIDER).partition("/")
    return Instance(name, instance) if slash else None


def has_provider_alone(node: Node) -> bool:
    """Whether the provider is the only hand on the node's power: it has no BMC that Hostler reaches."""
    return bool(node.binding(PROVIDER)) and not node.binding("bmc")


def provider_problem(binding: str) -> str:
    """Why this does not name a provider's instance, "" where it does."""
    if _BINDING.fullmatch(binding):
        return ""
    return f"provider {binding[:120]!a} does not name an instance: write PROVIDER/INSTANCE, such as cloud/i-0a1b2c"


def nodes_of(nodes: Iterable[Node], provider: str) -> dict[str, str]:
    """The provider's instances that are nodes here: instance → node id."""
    found = ((instance_of(node), node.id) for node in nodes)
    return {one.id: node for one, node in found if one is not None and one.provider == provider}
