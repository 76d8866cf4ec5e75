"""Makes operations by the name of their kind: for tests that draw kinds, and for those that read better so."""

from typing import Any

import msgspec

from hostler.core.state.operations import AnyAct


def an_act(kind: str, **arguments: Any) -> AnyAct:
    """The struct of this kind. Raises ValidationError on arguments that it does not take."""
    act: AnyAct = msgspec.convert({**_NEEDED.get(kind, {}), **arguments, "kind": kind}, AnyAct)
    return act


_NEEDED: dict[str, dict[str, Any]] = {
    "update_firmware": {"component": "BIOS", "version": "2"},
    "write_device_firmware": {
        "component": "drives",
        "tool": "nvme",
        "models": ["TWIN"],
        "version": "2",
        "image": "http://images/2",
        "sha256": "a" * 64,
    },
    "verify_device_firmware": {"wanted": {}},
    "fetch_system_image": {"version": "2", "image": "http://images/2", "sha256": "a" * 64, "good": ["2"]},
    "install_system_image": {"version": "2", "image": "http://images/2", "good": ["2"]},
    "arm_drill": {"drill": "d1"},
    "inject_fault": {"drill": "d1", "fault": "disk"},
}
