"""Acts on the wire: a verb with its arguments as JSON has them, as they are asked for and as they are shown."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from hostler.core.state.intent import Intent, Unreadable
from hostler.core.state.verbs.arguments import misfit, verb_of
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.facts import Verb, name_of
from hostler.server.problems import refuse

ARGUMENT_SHOWN = 256
"""Characters of the longest argument that is shown; a longer one is a document, and left out."""
SEE_ACTS = "see /schema/openapi.json for the verbs and their arguments"

ActFields = Annotated[dict[Annotated[str, Meta(max_length=64)], Any], Meta(max_length=16)]
"""A verb's arguments, and the verb; which arguments there are is the verb's to say."""

MOVED = {
    "verb": 'the verb belongs into `act`: {"act": {"verb": "hold", "hours": 2}, "target": "n0", "reason": "why"}',
    "args": 'arguments belong into `act`, each with its JSON type: {"act": {"hours": 2}, "reason": "why"}',
}
"""Members of no body, and what to write instead."""


def verb_in(fields: Mapping[str, Any]) -> str:
    """The verb that an act names. Raises ProblemError (422) where it names none."""
    verb = fields.get("verb")
    if not isinstance(verb, str):
        what = "`verb` of the act is not a text" if "verb" in fields else "the act names no verb"
        raise refuse(422, "malformed", what, f'write {{"act": {{"verb": "hold", "hours": 2}}}}; {SEE_ACTS}')
    return verb


def kind_named(verb: str) -> type[Verb]:
    """The verb of that name. Raises ProblemError (404) where there is none."""
    kind = VERBS.get(verb)
    if kind is None:
        raise refuse(404, "unknown", f"no verb '{verb[:64]}'", f"use one of {', '.join(sorted(VERBS))}")
    return kind


def act_made(kind: type[Verb], fields: Mapping[str, Any]) -> Verb:
    """The act. Raises ProblemError (422) where its arguments are not the verb's, or it names another verb."""
    verb = name_of(kind)
    if fields.get("verb", verb) != verb:
        what = f"the act names another verb than the path, which names {verb}"
        raise refuse(422, "malformed", what, f"leave `verb` out of the act, or write '{verb}'")
    try:
        return verb_of(kind, fields)
    except msgspec.ValidationError as error:
        raise refuse(422, "malformed", misfit(kind, error), SEE_ACTS) from error


def act_view(intent: Intent) -> dict[str, Any]:
    """The act as it is asked for; what is left to its default, and every document, is left out."""
    act = intent.act
    fields = act.args if isinstance(act, Unreadable) else msgspec.to_builtins(act)
    shown = {name: value for name, value in fields.items() if name != "verb" and not _is_document(value)}
    return {"verb": intent.verb, **shown}


def _is_document(value: object) -> bool:
    return isinstance(value, str) and len(value) > ARGUMENT_SHOWN
