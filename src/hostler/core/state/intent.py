"""Intents: a verb of `core.state.verbs` with its arguments, on what, by whom, and why."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Union

import msgspec
from msgspec import Struct, field

from hostler.core.state.scopes import Scope
from hostler.core.state.verbs.arguments import verb_of
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.facts import Verb, name_of


class Unreadable(Verb, frozen=True, tag=""):
    """A request whose verb or arguments are none of this version: it is recorded, and refused.

    `said` is its verb as it was written, `args` its arguments, `why` what is wrong with them.
    """

    said: str = ""
    args: dict[str, str] = field(default_factory=dict)
    why: str = ""


if TYPE_CHECKING:
    Act = Verb
else:
    Act = Union[(*VERBS.values(), Unreadable)]


class Bounds(Struct, frozen=True):
    """How far the token reached under which an intent was asked: a site, a pool, a tenant; "" is no bound."""

    site: str = ""
    pool: str = ""
    tenant: str = ""


class Intent(Struct, frozen=True):
    """Request of a person, or of a tool in a person's name. Recorded whether it is granted or refused.

    `target` is a node id, "rack:…", "pool:…", FLEET, or NODES with their ids in `nodes`; `key` makes a repeated
    request the same request. `own_work`: asked under a token that powers only machines that its person works on.
    `known_as`: other names of the person, as whoever let them in says: ISSUER#SUBJECT, verified mail, former names.
    """

    id: str
    act: Act
    target: str
    person: str
    reason: str
    at: datetime
    key: str = ""
    dry_run: bool = False
    bounds: Bounds = Bounds()
    nodes: tuple[str, ...] = ()
    own_work: bool = False
    known_as: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every name of the person who asked."""
        return (self.person, *self.known_as)

    @property
    def scope(self) -> Scope:
        """The scope that the target names."""
        return Scope.of(self.target)

    @property
    def verb(self) -> str:
        """The verb as people write it."""
        return self.act.said if isinstance(self.act, Unreadable) else name_of(type(self.act))

    @property
    def args(self) -> dict[str, str]:
        """The arguments as people write them; those that are left to their defaults are left out."""
        return arguments(msgspec.to_builtins(self.act))


def act_of(verb: str, args: Mapping[str, str]) -> Verb:
    """The verb with its arguments as people write them; Unreadable where there is no such verb, or it takes others."""
    kind = VERBS.get(verb)
    if kind is None:
        return Unreadable(verb, dict(args), "there is no such verb")
    try:
        return verb_of(kind, args, text=True)
    except msgspec.ValidationError as error:
        return Unreadable(verb, dict(args), str(error)[:256])


def arguments(act: Mapping[str, Any]) -> dict[str, str]:
    """The arguments of an encoded verb as people write them."""
    if act["verb"] == "":
        return dict(act.get("args", {}))
    return {name: _written(value) for name, value in act.items() if name != "verb"}


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
