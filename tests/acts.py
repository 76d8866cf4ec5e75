"""Makes operations by the name of their kind: for tests that draw kinds, and for those that read better so."""

from typing import Any

import msgspec

from hostler.core.state.operations import AnyAct


def an_act(kind: str, **arguments: Any) -> AnyAct:
    """The struct of this kind. Raises ValidationError on arguments that it does not take."""
    needed = {"component": "BIOS", "version": "2"} if kind == "update_firmware" else {}
    act: AnyAct = msgspec.convert({**needed, **arguments, "kind": kind}, AnyAct)
    return act
