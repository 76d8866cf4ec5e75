"""Reads the GPUs' state through NVML, call by call, in a process that may hang or crash at any of them.

`python -m hostler.agent.collectors.nvml_state_reader TWIN DESK`: answers each line on stdin with a report in JSON, and
writes to the file descriptor DESK what it is about to call. TWIN is "" for the driver's library, or a file of recorded
states (`nvml_twin`). NVML is left again after each report, because a GPU that somebody holds open cannot be reset; but
not where a GPU is without persistence mode, because it would then be started and stopped each time.
"""

import contextlib
import importlib
import json
import math
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from hostler.agent.collectors import nvml_twin
from hostler.agent.collectors.kernel_files import text_of
from hostler.agent.collectors.nvml_calls import SLOW, STATIC, Calls, Ctx

_ODD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, OSError)
"""Exceptions that a library raises in our code by answering nonsense."""
_NO_NVML = {9: "the driver is not loaded", 12: "the driver's library is not installed"}
_LOST = {15: "gpu_is_lost", 16: "reset_required"}
_WORDS = {3: "not supported", 4: "no permission", 6: "not found", 10: "timeout", 13: "not in this driver"}
MAX_GPUS = 64
TEXT_CHARS = 96
BIGGEST = 2**63 - 1


class NvmlStateReader:
    """Reads all GPUs; remembers what does not change, and what changes slowly for a minute.

    `doing` is told of each call before it is made.
    """

    def __init__(self, nvml: Any, doing: Callable[[str], None]) -> None:
        self._nvml = nvml
        self._doing = doing
        self._kept: dict[tuple[int, str], tuple[float, dict[str, Any], dict[str, str]]] = {}
        self._open = False
        self._identity: dict[int, dict[str, Any]] = {}

    def report(self, now_s: float) -> dict[str, Any]:
        """`state` is answers or absent (with `reason`); `gpus` have `facts`, `absent` and `lost`."""
        try:
            if not self._open:
                self._doing("nvmlInit")
                self._nvml.nvmlInit()
                self._open = True
        except self._nvml.NVMLError as error:
            return {"state": "absent", "reason": _NO_NVML.get(_code(error), _reason(error))}
        except _ODD as error:
            return {"state": "absent", "reason": f"NVML does not start: {type(error).__name__}"}
        try:
            found = self._all(now_s)
        except self._nvml.NVMLError as error:
            found = {"state": "absent", "reason": _reason(error)}
        except _ODD as error:
            found = {"state": "absent", "reason": f"NVML answers nonsense: {type(error).__name__}"}
        if all(gpu["facts"].get("persistence_mode") for gpu in found.get("gpus", ())):
            self._leave()
        return found

    def _leave(self) -> None:
        self._open = False
        self._doing("nvmlShutdown")
        with contextlib.suppress(self._nvml.NVMLError, *_ODD):
            self._nvml.nvmlShutdown()

    def _all(self, now_s: float) -> dict[str, Any]:
        self._doing("nvmlDeviceGetCount")
        count = self._nvml.nvmlDeviceGetCount()
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MAX_GPUS:
            return {"state": "absent", "reason": f"NVML counts {count!r:.40} GPUs"}
        gpus = [self._gpu(index, now_s) for index in range(count)]
        try:
            driver = _scalar(self._nvml.nvmlSystemGetDriverVersion())
        except (self._nvml.NVMLError, *_ODD):
            driver = None
        return {"state": "answers", "driver": driver, "gpus": gpus}

    def _gpu(self, index: int, now_s: float) -> dict[str, Any]:
        found: dict[str, Any] = {"index": index, "facts": {}, "absent": {}, "lost": ""}
        try:
            self._doing(f"{self._identity.get(index, {}).get('pci', '')} nvmlDeviceGetHandleByIndex({index})")
            handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
        except self._nvml.NVMLError as error:
            found["lost"] = _LOST.get(_code(error), "")
            found["absent"]["handle"] = _reason(error)
            found["facts"] |= self._identity.get(index, {})
            return found
        except _ODD:
            found["absent"]["handle"] = "nonsense"
            return found
        context = Ctx(self._nvml, handle, found["facts"])
        for name, every_s, call in Calls:
            self._call(found, name, every_s, partial(call, context), now_s)
            if found["lost"]:
                break
        told = {k: v for k, v in found["facts"].items() if k in ("pci", "uuid", "serial")}
        self._identity[index] = {**self._identity.get(index, {}), **told} if found["lost"] else told
        found["facts"] = {**(self._identity[index] if found["lost"] else {}), **found["facts"]}
        return found

    def _call(self, found: dict[str, Any], name: str, every_s: float, call: Callable[[], Any], now_s: float) -> None:
        """Take one call's facts, kept ones where they are fresh enough; or why there are none."""
        who = found["facts"].get("uuid") or found["facts"].get("pci") or ""
        key = (found["index"], f"{who} {name}")
        kept = self._kept.get(key)
        if every_s and kept and now_s - kept[0] < every_s and (every_s != STATIC or not kept[2]):
            found["facts"] |= kept[1]
            found["absent"] |= kept[2]
            return
        self._doing(f"{found['facts'].get('pci', '')} {name}")
        facts: dict[str, Any] = {}
        absent: dict[str, str] = {}
        try:
            facts = {fact: _scalar(value) for fact, value in call().items()}
            absent = {fact: "nonsense" for fact, value in facts.items() if value is None}
        except self._nvml.NVMLError as error:
            found["lost"] = _LOST.get(_code(error), "")
            absent[name] = _reason(error)
        except _ODD:
            absent[name] = "nonsense"
        facts = {fact: value for fact, value in facts.items() if value is not None}
        if every_s and not found["lost"]:
            self._kept[key] = (now_s, facts, absent)
        found["facts"] |= facts
        found["absent"] |= absent


def _scalar(value: Any) -> Any:
    """The value, if JSON and our readers can hold it; None for anything else."""
    match value:
        case bool():
            return value
        case int():
            return value if -BIGGEST <= value <= BIGGEST else None
        case float():
            return value if math.isfinite(value) else None
        case bytes():
            return _text(value.decode("utf-8", "replace"))
        case str():
            return _text(value)
        case _:
            return None


def _text(value: str) -> str:
    return "".join(c if c.isprintable() and not 0xD800 <= ord(c) < 0xE000 else "?" for c in value[:TEXT_CHARS]).strip()


def _code(error: Any) -> int:
    code = getattr(error, "value", None)
    return code if isinstance(code, int) else 0


def _reason(error: Any) -> str:
    code = _code(error)
    return _WORDS.get(code, f"NVML error {code}")


def _library(twin: str) -> Any:
    if twin:
        return nvml_twin.NvmlTwin(twin)
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        return None


def gpus_on_pci(root: Path) -> int:
    """Count NVIDIA display and 3D controllers on the PCI bus, whether a driver knows them or not."""
    nvidia = (one for one in (root / "sys/bus/pci/devices").glob("*") if text_of(one / "vendor") == "0x10de")
    return sum(text_of(device / "class").startswith(("0x0300", "0x0302")) for device in nvidia)


def serve(nvml: Any, progress_fd: int) -> None:
    """Answer questions until stdin ends."""

    def doing(what: str) -> None:
        os.pwrite(progress_fd, what.encode("utf-8", "replace")[:100] + b"\0", 0)

    reader = NvmlStateReader(nvml, doing) if nvml else None
    on_pci, count_again_s = 0, 0.0
    for _ in sys.stdin:
        now_s = time.monotonic()
        if reader is None:
            report: dict[str, Any] = {"state": "absent", "reason": "nvidia-ml-py is not installed"}
        else:
            report = reader.report(now_s)
        if now_s >= count_again_s:
            doing("counting GPUs on the PCI bus")
            on_pci, count_again_s = gpus_on_pci(Path("/")), now_s + SLOW
        report["gpus_on_pci"] = on_pci
        sys.stdout.write(json.dumps(report, ensure_ascii=True) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    library: ModuleType | Any = _library(sys.argv[1])
    serve(library, int(sys.argv[2]))
