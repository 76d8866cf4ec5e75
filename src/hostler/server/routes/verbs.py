"""Verbs that a caller may ask for, with their arguments: what a form for them needs to know."""

from litestar import Router, get
from msgspec import Struct

from hostler.core.state.verbs.arguments import VerbArgument, arguments_of, kind_of
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.facts import Heading, Permission, Target, Verb, help_of
from hostler.server.auth import SEE, may
from hostler.server.dependencies import Who


class ArgumentView(Struct, frozen=True):
    """An argument of a verb. `kind`: text, moment, number, integer, boolean or choice; `choices` are those of a choice.

    Text, moments and choices are JSON strings, a moment with its time zone; the others are JSON numbers and booleans.
    """

    name: str
    kind: str
    help: str
    required: bool
    choices: tuple[str, ...] = ()


class VerbView(Struct, frozen=True):
    """A verb: what it does, on what, how the command line calls it, and its arguments.

    `on_node`, `on_rack`: whether the target may be one. `heading` groups the verbs of a node; "" for others. `route` is
    the API's route of a verb that brings documents along; the others are asked for by POST /v1/intents, where `act` is
    the verb with its arguments.
    """

    verb: str
    help: str
    permission: Permission
    target: Target
    on_node: bool
    on_rack: bool
    heading: str
    command: str
    route: str
    args: tuple[ArgumentView, ...]


def verb_view(verb: str, kind: type[Verb]) -> VerbView:
    """The verb as the API shows it."""
    facts = kind.facts
    return VerbView(
        verb=verb,
        help=help_of(kind),
        permission=facts.asks,
        target=facts.target,
        on_node=facts.target.may_be_node,
        on_rack=facts.target.may_be_rack,
        heading=facts.heading.value if facts.heading else "",
        command=facts.command or (f"node {verb}" if isinstance(facts.heading, Heading) else ""),
        route=facts.route,
        args=tuple(_argument_view(one) for one in arguments_of(kind)),
    )


def _argument_view(one: VerbArgument) -> ArgumentView:
    return ArgumentView(one.name, kind_of(one), one.help, one.required, one.choices)


VIEWS = tuple(verb_view(verb, kind) for verb, kind in VERBS.items())
"""Every verb."""


@get("/verbs", guards=SEE)
async def list_verbs(who: Who) -> tuple[VerbView, ...]:
    """Verbs that the caller may ask for, with their arguments."""
    return tuple(view for view in VIEWS if may(who, view.permission))


router = Router(path="/", route_handlers=[list_verbs], tags=["intents"])
