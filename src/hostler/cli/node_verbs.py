"""Commands and options of verbs, from their structs: the help is the docstring, the options are the fields."""

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter as Argument
from inspect import Signature
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from cyclopts import App, Parameter
from msgspec import ValidationError

from hostler.cli.command_errors import unusable
from hostler.cli.intent_requests import IntentRequest, ask
from hostler.cli.options import ACT, CONNECT, SHOW_ONCE, Connect, ShowOnce, Why
from hostler.core.state.scopes import FLEET, Scope
from hostler.core.state.verbs.arguments import VerbArgument, arguments_of, misfit, verb_of
from hostler.core.state.verbs.facts import Target, Verb, help_of, name_of

if TYPE_CHECKING:
    from hostler.client import Client


def _option(one: VerbArgument) -> Argument:
    option = Parameter(help=one.help, negative=(), show_default=None if one.default else False, group=ACT)
    typed: Any = one.type if one.required or one.default is not None else one.type | None
    return keyword(one.name, Annotated[typed, option], Argument.empty if one.required else one.default)


def help_of_argument(kind: type[Verb], name: str) -> str:
    """The help of a verb's argument, for a command that is not made of the verb."""
    return _argument(kind, name).help


def _argument(kind: type[Verb], name: str) -> VerbArgument:
    return next(one for one in arguments_of(kind) if one.name == name)


def argument_word(kind: type[Verb], name: str) -> Argument:
    """A verb's argument as a word of its command, not as an option."""
    one = _argument(kind, name)
    return word(name, Annotated[Literal[one.choices] if one.choices else one.type, Parameter(help=one.help)])


def act_of(kind: type[Verb], given: Mapping[str, Any]) -> Verb:
    """The act for the given options. Raises CommandError where one is nothing that the verb takes."""
    try:
        return verb_of(kind, {name: given[name] for name in kind.__struct_fields__ if name in given}, text=True)
    except ValidationError as error:
        command_of = kind.facts.command or f"node {name_of(kind)}"
        raise unusable(misfit(kind, error), f"see `hostler {command_of} --help`") from error


class Asking(Protocol):
    """Turns a command's first words and its act into requests."""

    def __call__(
        self, client: "Client", words: Sequence[str], act: Verb, given: Mapping[str, Any], /
    ) -> Sequence[IntentRequest]: ...


def command(
    kind: type[Verb], first: Sequence[Argument], asking: Asking, said: str = "", *more: Argument
) -> Callable[..., int]:
    """The command of a verb: what it names, its options, its help (`said` where that is another).

    `first` are its words: what it is asked for on, and arguments of the verb that are no options.
    """
    argument_words = [one.name for one in first[1:]]

    def run(*words: str, **chosen: Any) -> int:
        by_word = dict(zip(argument_words, words[1:], strict=False))
        given = {one.name: one.default for one in arguments} | chosen | by_word
        act = act_of(kind, given)
        client = given["connect"].client()
        requests = asking(client, words, act, given)
        return ask(client, given["why"], requests, given["show"].output)

    arguments = (
        *first,
        *(_option(one) for one in arguments_of(kind) if one.name not in argument_words),
        keyword("why", Why),
        *more,
        keyword("show", ShowOnce, SHOW_ONCE),
        keyword("connect", Connect, CONNECT),
    )
    run.__signature__ = Signature(arguments)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in arguments}
    run.__name__, run.__doc__ = name_of(kind).replace("-", "_"), said or help_of(kind)
    return run


def of_scope(kind: str) -> Asking:
    """Asks for the act on the rack, pool or cluster that the first word names, its kind before it or left out."""

    def asking(_: "Client", words: Sequence[str], act: Verb, __: Mapping[str, Any]) -> Sequence[IntentRequest]:
        return [IntentRequest(act, Scope(kind, words[0].removeprefix(f"{kind}:")).text)]

    return asking


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

    def asking(_: "Client", words: Sequence[str], act: Verb, __: Mapping[str, Any]) -> Sequence[IntentRequest]:
        if kind.facts.target in _SEVERAL and not words:
            noun = kind.facts.target.name
            raise unusable(f"no {noun} is named", f"name one or several; see `hostler {noun} list`")
        return [IntentRequest(act, word) for word in dict.fromkeys(words or (FLEET,))]

    return command(kind, (_FIRST_WORDS[kind.facts.target],) if kind.facts.target in _FIRST_WORDS else (), asking)
