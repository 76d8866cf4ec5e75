"""Idempotency keys: the same request gets the first answer again; another request under its key is refused."""

import hashlib

import msgspec

from hostler.core.intents.ask import Answered, AnyAsk
from hostler.core.state.cell_record import StoredAnswer as Earlier
from hostler.core.state.scopes import NODES

OTHER_CONTENT = "key_of_another_request"
"""In the detail of an answer: the key belongs to a request with other content, and nothing was done."""


def repeated(ask: AnyAsk, earlier: Earlier) -> Answered:
    """The first answer, or the refusal where the key was given to something else."""
    if earlier.content and earlier.content != content_of(ask):
        text = "this idempotency key belongs to another request: nothing was done; give a key of its own"
        return Answered(False, text, detail={OTHER_CONTENT: "yes", "intent": earlier.intent})
    detail = {"intent": earlier.intent, "repeated": "yes"}
    if earlier.approval:
        detail["approval"] = earlier.approval
    return Answered(earlier.granted, earlier.answer, detail=detail)


def content_of(ask: AnyAsk) -> str:
    """The digest (SHA-256) of everything that was asked, "" where the request has no key.

    Of the arguments as people write them, as version 1 made it: either version finds the other's again.
    """
    intent = ask.intent
    if not intent.key:
        return ""
    sha256 = ask.configuration.sha256 if ask.configuration is not None else ""
    args = intent.args | ({NODES: ",".join(intent.nodes)} if intent.nodes else {})
    asked = (intent.verb, intent.target, intent.reason, intent.dry_run, args, sha256, ask.documents)
    return hashlib.sha256(msgspec.json.encode(asked, order="sorted")).hexdigest()
