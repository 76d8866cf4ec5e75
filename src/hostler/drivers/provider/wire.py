"""The provider contract, version 1: what is asked of a site's service, and what its answers mean. Pure.

One POST of JSON an action, signed as Standard Webhooks 1.0.0. `docs/reference/provider.md` is the contract for those
who write the service; `deploy/provider/provider_service.py` is one.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Struct

from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.provider import MaintenanceNotice
from hostler.drivers.target_http import Letter
from hostler.drivers.webhook_signature import signed_headers, signing_key

CONTRACT = 1
TEXT_MAX = 300
NOTICES_MOST = 1_000
MACS_MOST = 16
Action = Literal["power_on", "power_off", "reboot", "replace", "status", "describe", "notices"]
CONTENT_TYPE = "application/json; charset=utf-8"


class ProviderWireError(Exception):
    """An answer that the contract does not know."""


class ProviderRequest(Struct, frozen=True, omit_defaults=True):
    """One question. `request` names the operation: the service carries out a request once, however often it is asked.

    `status` asks what became of `request`; `describe` and `notices` change nothing and have no request.
    """

    version: int
    action: Action
    provider: str
    request: str = ""
    instance: str = ""
    node: str = ""
    serial: str = ""
    reason: str = ""
    deadline: datetime | None = None


class Replacement(Struct, frozen=True):
    """The instance that takes the place of one that was given back."""

    instance: str = ""
    hostname: str = ""
    serial: str = ""
    macs: tuple[str, ...] = ()


class ContractAnswer(Struct, frozen=True):
    """An answer. `state` is that of the request: done, running, refused, failed, or unknown (never heard of it).

    `power` is on, off or "" (not known), as the provider sees the instance now.
    """

    version: int
    state: Literal["done", "running", "refused", "failed", "unknown"] = "done"
    detail: str = ""
    power: Literal["on", "off", ""] = ""
    replacement: Replacement | None = None
    notices: tuple[MaintenanceNotice, ...] = ()


def letter(asked: ProviderRequest, url: str, fields: Mapping[str, str], now_s: int) -> Letter:
    """The signed request. Raises UnreachableError where the secret has no usable key."""
    body = msgspec.json.encode(asked)
    identity = f"{asked.provider}/{asked.action}/{asked.request or now_s}"
    headers = {"Content-Type": CONTENT_TYPE, **signed_headers(signing_key(fields), identity, now_s, body)}
    return Letter(url, body, headers)


def answer(body: bytes) -> ContractAnswer:
    """An answer as the contract has it, its texts cut. Raises ProviderWireError."""
    try:
        version = msgspec.json.decode(body, type=_Version).version
        if version != CONTRACT:
            raise ProviderWireError(f"it answers by version {version} of the contract, this Hostler speaks {CONTRACT}")
        found = msgspec.json.decode(body, type=ContractAnswer)
    except UNREADABLE as error:
        raise ProviderWireError(f"its answer is not one of the contract: {str(error)[:TEXT_MAX]}") from error
    if len(found.notices) > NOTICES_MOST:
        raise ProviderWireError(f"it has {len(found.notices)} notices; the contract allows {NOTICES_MOST}")
    new = found.replacement
    if new is not None and len(new.macs) > MACS_MOST:
        raise ProviderWireError(f"the new instance has {len(new.macs)} MAC addresses; the contract allows {MACS_MOST}")
    notices = tuple(msgspec.structs.replace(one, text=_line(one.text)) for one in found.notices)
    return msgspec.structs.replace(found, detail=_line(found.detail), notices=notices)


class _Version(Struct, frozen=True):
    version: int


def _line(text: str) -> str:
    """One printable line of bounded length."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:TEXT_MAX]
