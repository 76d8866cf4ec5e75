"""The API's description of acts: one of the verbs, each with its own arguments, told apart by `verb`."""

from typing import Any, Union

import msgspec

from hostler.core.state.verbs.every import VERBS

_REF = "#/components/schemas/Act{name}"
_ACT = _REF.format(name="")
ASKED = {verb: kind for verb, kind in VERBS.items() if not kind.facts.route}
"""Verbs that POST /v1/intents takes; each of the others has a route of its own, for the document that it brings."""
_SHOWN = {
    "type": "object",
    "description": "The verb and those of its arguments that were given, as `Act` has them.",
    "properties": {"verb": {"type": "string"}},
    "required": ["verb"],
}


def with_acts(schemas: dict[str, Any]) -> dict[str, Any]:
    """The components with those of acts, and with bodies and views that refer to them."""
    (act,), found = msgspec.json.schema_components([Union[tuple(ASKED.values())]], ref_template=_REF)  # noqa: UP007 - of many
    verbs = {_REF.format(name=name).rpartition("/")[2]: schema for name, schema in found.items()}
    described = {"oneOf": act["anyOf"], "discriminator": act["discriminator"]}
    return {
        **schemas,
        **verbs,
        "Act": {**described, "description": "What is asked for: a verb with its arguments, all under their own types."},
        "IntentBody": _with_act(schemas["IntentBody"], {"$ref": _ACT}),
        "ActBody": _with_act(schemas["ActBody"], _arguments(verbs)),
        "ApprovalView": _with_act(schemas["ApprovalView"], _SHOWN),
        "IntentProgress": _with_act(schemas["IntentProgress"], _SHOWN),
    }


def _with_act(body: dict[str, Any], act: dict[str, Any]) -> dict[str, Any]:
    return {**body, "properties": {**body["properties"], "act": act}}


def _arguments(verbs: dict[str, Any]) -> dict[str, Any]:
    """An object of the arguments of any verb, of which the verb in the path takes its own."""
    found: dict[str, list[Any]] = {}
    for schema in verbs.values():
        for name, argument in schema.get("properties", {}).items():
            if name != "verb" and argument not in found.setdefault(name, []):
                found[name].append(argument)
    properties = {name: ways[0] if len(ways) == 1 else {"anyOf": ways} for name, ways in sorted(found.items())}
    return {
        "type": "object",
        "description": "Arguments of the verb in the path, as `Act` has them.",
        "properties": {"verb": {"type": "string"}, **properties},
        "additionalProperties": False,
    }
