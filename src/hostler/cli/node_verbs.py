"""Commands and options of verbs, from their structs: the help is the docstring, the options are the fields."""

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter as Argument
from inspect import Signature
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from cyclopts import App, Parameter

from hostler.cli.command_errors import unusable
from hostler.cli.intent_requests import IntentRequest, ask
from hostler.cli.options import ACT, CONNECT, SHOW_ONCE, Connect, ShowOnce, Why
from hostler.core.state.scopes import FLEET
from hostler.core.state.verbs.arguments import VerbArgument, arguments_of
from hostler.core.state.verbs.facts import Target, Verb, help_of, name_of

if TYPE_CHECKING:
    from hostler.client import Client


def _option(one: VerbArgument) -> Argument:
    option = Parameter(help=one.help, negative=(), show_default=None if one.default else False, group=ACT)
    typed: Any = one.type if one.required or one.default is not None else one.type | None
    return keyword(one.name, Annotated[typed, option], Argument.empty if one.required else one.default)


def args_of(of: Sequence[VerbArgument], given: Mapping[str, Any]) -> dict[str, str]:
    """Arguments of an intent for the given options: all that differ from their defaults."""
    values = ((one, given.get(one.name, one.default)) for one in of)
    return {one.name: _written(value) for one, value in values if value != one.default}


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


class Asking(Protocol):
    """Turns a command's first words and its options into requests; `args` are those of the verb."""

    def __call__(
        self, client: "Client", words: Sequence[str], args: dict[str, str], given: Mapping[str, Any], /
    ) -> Sequence[IntentRequest]: ...


def command(
    kind: type[Verb], first: Argument | None, asking: Asking, said: str = "", *more: Argument
) -> Callable[..., int]:
    """The command of a verb: its first word or words, its options, its help (`said` where that is another)."""
    own = arguments_of(kind)

    def run(*words: str, **chosen: Any) -> int:
        given = {one.name: one.default for one in arguments} | chosen
        client = given["connect"].client()
        requests = asking(client, words, args_of(own, given), given)
        return ask(client, given["why"], requests, given["show"].output)

    arguments = (
        *((first,) if first else ()),
        *map(_option, own),
        keyword("why", Why),
        *more,
        keyword("show", ShowOnce, SHOW_ONCE),
        keyword("connect", Connect, CONNECT),
    )
    run.__signature__ = Signature(arguments)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in arguments}
    run.__name__, run.__doc__ = name_of(kind).replace("-", "_"), said or help_of(kind)
    return run


def word(name: str, kind: Any) -> Argument:
    """A command's first word."""
    return Argument(name, Argument.POSITIONAL_OR_KEYWORD, annotation=kind)


def keyword(name: str, kind: Any, default: Any = Argument.empty) -> Argument:
    """An option of a command, or several as one dataclass."""
    return Argument(name, Argument.KEYWORD_ONLY, annotation=kind, default=default)


_SEVERAL = (Target.hold, Target.ticket, Target.approval)
"""Targets of which an act may name several: each is asked for by itself."""

_FIRST_WORDS = {
    **{kind: Argument(f"{kind.name}s", Argument.VAR_POSITIONAL, annotation=str) for kind in _SEVERAL},
    **{
        kind: word(kind.name, str)
        for kind in (
            Target.node,
            Target.window,
            Target.incident,
            Target.rollout,
            Target.fabric,
            Target.rma,
            Target.golden,
            Target.asset,
        )
    },
} | {
    Target.scope: word(
        "scope", Annotated[str, Parameter(help="A node, `rack:NAME`, `pool:NAME`, `cluster:NAME` or `fleet`.")]
    )
}


def offer(app: App, *kinds: type[Verb]) -> None:
    """Add the commands of verbs that are asked for on what the first word names, or on the fleet."""
    for kind in kinds:
        app.command(plain(kind), name=kind.facts.command.split()[-1])


def plain(kind: type[Verb]) -> Callable[..., int]:
    """The command of a verb that is asked for on what the first word names, or on the fleet."""

    def asking(
        _: "Client", words: Sequence[str], args: dict[str, str], __: Mapping[str, Any]
    ) -> Sequence[IntentRequest]:
        if kind.facts.target in _SEVERAL and not words:
            noun = kind.facts.target.name
            raise unusable(f"no {noun} is named", f"name one or several; see `hostler {noun} list`")
        return [IntentRequest(name_of(kind), word, args) for word in dict.fromkeys(words or (FLEET,))]

    return command(kind, _FIRST_WORDS.get(kind.facts.target), asking)
