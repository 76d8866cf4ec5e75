"""NVML from a file: recorded states of GPUs behind the interface of `pynvml`, hangs and crashes included.

A file of JSON: `{"base": FILE, "library": {CALL: ANSWER}, "each": {…}, "gpus": [{CALL: ANSWER}, …], "change": {…}}`.
`each` is what the GPUs of `gpus` have in common. With `base` a file begins as that one, and `change` ({"3": {…}}, "*"
for all) changes GPUs of it; a GPU changed to null is not there.

An ANSWER is a value, or an object: `{"error": 15}` raises that NVMLError; `{"hang": 1}` never returns; `{"crash": 1}`
ends the process as a fault in the library would; `{"args": {"0,1": ANSWER}}` goes by the arguments after the GPU, "*"
for all others; `{"struct": {…}}` is a structure, also for a call that fills the one it is given; `{"fields": {"82":
ANSWER}}` answers nvmlDeviceGetFieldValues. What is not named raises NVML_ERROR_NOT_SUPPORTED. The file is read again
at every nvmlInit.
"""

import importlib
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

NOT_SUPPORTED = 3
MAX_BASES = 8
_UNION = {float: (0, "dVal"), int: (3, "ullVal")}


class NvmlTwin:
    """Looks like the module `pynvml`: constants, structures and errors are real, calls answer from the file."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._real: Any = importlib.import_module("pynvml")
        self._library: dict[str, Any] = {}
        self._gpus: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml") or not hasattr(self._real, name) or not callable(getattr(self._real, name)):
            return getattr(self._real, name)
        return lambda *args: self._call(name, args)

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's name
        """Read the state file; raises the NVML error that the file gives for this call."""
        self._library, self._gpus = _load(self._path, MAX_BASES)
        if "nvmlInit" in self._library:
            self._answer(self._library["nvmlInit"], ())

    def nvmlDeviceGetCount(self) -> Any:  # noqa: N802 - NVML's name
        """Number of GPUs in the file, unless the file gives another answer."""
        answer = self._library.get("nvmlDeviceGetCount", len(self._gpus))
        return self._answer(answer, ())

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:  # noqa: N802 - NVML's name
        """The GPU's entry, which stands for its handle; raises the NVML error that the file gives."""
        gpu = self._gpus[index] if index < len(self._gpus) else {}
        if "nvmlDeviceGetHandleByIndex" in gpu:
            self._answer(gpu["nvmlDeviceGetHandleByIndex"], ())
        return gpu

    def _call(self, name: str, args: tuple[Any, ...]) -> Any:
        if args and isinstance(args[0], dict):
            return self._answer(args[0].get(name, {"error": NOT_SUPPORTED}), args[1:])
        default = None if name == "nvmlShutdown" else {"error": NOT_SUPPORTED}
        return self._answer(self._library.get(name, default), args)

    def _answer(self, answer: Any, args: tuple[Any, ...]) -> Any:
        """Answer from the file, with hangs, crashes and errors made real."""
        if not isinstance(answer, dict):
            return answer
        kind, content = next(iter(answer.items()), ("struct", {}))
        play: dict[str, Callable[[], Any]] = {
            "hang": _hang,
            "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
            "error": lambda: self._raise(content),
            "args": lambda: self._answer(_choose(content, args), args),
            "struct": lambda: _struct(content, args),
            "fields": lambda: [self._field(content, wanted) for wanted in args[0]],
        }
        return play[kind]() if kind in play else answer

    def _raise(self, code: Any) -> None:
        raise self._real.NVMLError(code)

    def _field(self, fields: Any, wanted: Any) -> SimpleNamespace:
        key = ",".join(map(str, wanted)) if isinstance(wanted, tuple) else str(wanted)
        value = self._answer(fields.get(key, {"struct": {"nvmlReturn": NOT_SUPPORTED}}), ())
        if isinstance(value, SimpleNamespace):
            return value
        kind, member = _UNION.get(type(value), (3, "ullVal"))
        return SimpleNamespace(nvmlReturn=0, valueType=kind, value=SimpleNamespace(**{member: value}))


def _load(path: Path, bases: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    state = json.loads(path.read_text(encoding="utf-8"))
    library, gpus = _load(path.parent / state["base"], bases - 1) if "base" in state and bases else ({}, [])
    gpus = [{**state.get("each", {}), **gpu} for gpu in state.get("gpus", gpus)]
    for index, change in state.get("change", {}).items():
        chosen = range(len(gpus)) if index == "*" else [int(index)]
        for place in chosen:
            gpus[place] = {**gpus[place], **change} if change is not None else {}
    return library | state.get("library", {}), [gpu for gpu in gpus if gpu]


def _choose(answers: Any, args: tuple[Any, ...]) -> Any:
    key = ",".join(str(arg) for arg in args)
    return answers.get(key, answers.get("*", {"error": NOT_SUPPORTED}))


def _struct(content: Any, args: tuple[Any, ...]) -> Any:
    """The structure, or the one that the caller gave by reference, filled."""
    target = getattr(args[-1], "_obj", None) if args else None
    if target is None:
        return SimpleNamespace(**content)
    for name, value in content.items():
        setattr(target, name, value)
    return 0


def _hang() -> None:
    while True:
        time.sleep(3600)
