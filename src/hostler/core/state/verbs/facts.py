"""Facts about a verb besides its arguments: permission, target, remedy, and where the command line offers it."""

from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from hostler.core.state.attached_files import FILE_BYTES_MOST


class Permission(StrEnum):
    """Permission that a route or verb needs."""

    see = "see"
    see_cell = "see_cell"
    disturb = "disturb"
    withdraw = "withdraw"
    work = "work"
    answer = "answer"
    operate = "operate"
    enrol = "enrol"
    configure = "configure"
    report = "report"


class Target(StrEnum):
    """Target of a verb; the value is how the reference says it."""

    node = "one node"
    nodes = "a node, several, or those in production of a `pool:`, a rack or another domain"
    scope = "`fleet`, `cluster:`, `pool:`, a rack or another domain, a network's `switch:`, or a node"
    domain = "a rack or another domain"
    pool = "`pool:`"
    cluster = "`cluster:`"
    fleet = "`fleet`"
    hold = "a hold"
    window = "a maintenance window"
    ticket = "a ticket"
    incident = "an incident"
    approval = "an approval"
    rollout = "a rollout"
    fabric = "a network"
    rma = "a return to the vendor"
    golden = "a golden"
    rack = "a rack"
    asset = "an asset"

    @property
    def may_be_node(self) -> bool:
        """Whether it may be one node."""
        return self in (Target.node, Target.nodes, Target.scope)

    @property
    def may_be_rack(self) -> bool:
        """Whether it may be a rack."""
        return self in (Target.nodes, Target.scope, Target.domain, Target.rack)


class Heading(StrEnum):
    """The heading under which `hostler node --help` lists a verb."""

    work = "Work on a node"
    remedy = "Remedies"
    repair = "Repair"
    life = "Lifecycle"


class VerbFacts(Struct, frozen=True):
    """Facts that hold for every request of one verb.

    `heading`: the verb is a command of `hostler node`; `command` is the command of any other, "" for none. `easing`: it
    stands before other requests in the queue. `route` is the API's route of a verb that brings documents along.
    `partly`: a target of which the caller reaches a part is within its reach, and the verb's handler says which.
    """

    asks: Permission
    target: Target
    heading: Heading | None = None
    command: str = ""
    easing: bool = False
    route: str = ""
    partly: bool = False


def _stored(name: str) -> str:
    """The verb of a class name: `ResetGpu` is "reset-gpu"."""
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")


class Verb(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="verb", tag=_stored):
    """A verb with its arguments. Its docstring is its help, its `facts` are those of the verb."""

    facts: ClassVar[VerbFacts]


class FileVerb(Verb, frozen=True):
    """Attach a photo or file, whose bytes came with the request and are kept by their SHA-256."""

    digest: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    name: Annotated[str, Meta(min_length=1, max_length=100)]
    media_type: Annotated[str, Meta(max_length=40)]
    size: Annotated[int, Meta(ge=1, le=FILE_BYTES_MOST)]


def name_of(kind: type[Verb]) -> str:
    """The verb as people write it."""
    return str(kind.__struct_config__.tag)


def help_of(kind: type[Verb]) -> str:
    """Purpose of the verb, in one line."""
    return (kind.__doc__ or "").partition("\n")[0]


Hours = Annotated[float, Meta(gt=0, le=24 * 365)] | None
"""Hours after which something ends by itself, None: never."""

Ending = Annotated[Hours, Meta(description="It ends by itself after so many hours.")]
Now = Annotated[bool, Meta(description="Do not wait for a better moment; work that may not be disturbed still is not.")]
Name = Annotated[str, Meta(max_length=256)]
