"""The child process that runs one check: `python -m hostler_checks.child REQUEST`; its answer goes to a pipe.

REQUEST is JSON: check, entry (MODULE:FUNCTION in `checks`), part, params, seconds, nonce, plant. The check "probe"
lists the GPUs.
"""

import ctypes
import importlib
import json
import os
import signal
import sys
from typing import Any

from hostler_checks import plants
from hostler_checks.answers import Answer, encoded
from hostler_checks.bounded_child import ANSWER_FD, PARENT
from hostler_checks.device import Device, UnableError, gpus
from hostler_checks.work import Work

PROBE = "probe"
_PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> int:
    """Run what the request asks; 0 where it was answered."""
    request: dict[str, Any] = json.loads(argv[0])
    _die_with_parent()
    plant = str(request.get("plant", "")) if plants.permitted() else ""
    plants.misbehave(plant, _write)
    _write(encoded(_answer(request, plant), str(request["nonce"])))
    return 3 if plant == "lying_exit" else 0


def _answer(request: dict[str, Any], plant: str) -> Answer:
    if request["check"] == PROBE:
        return Answer(stack={f"gpu{index}": name for index, name in enumerate(gpus())})
    module, _, function = str(request["entry"]).partition(":")
    try:
        device = Device(request["part"])
        work = Work(str(request["check"]), device, request["params"], float(request["seconds"]), plant)
        run = getattr(importlib.import_module(f"hostler_checks.checks.{module}"), function)
        answer: Answer = run(work)
    except UnableError as error:
        return Answer(unable=str(error))
    except ModuleNotFoundError as error:
        return Answer(unable=f"{error.name or error} is missing for {sys.executable}: install it beside hostler-checks")
    except MemoryError:
        return Answer(unable="the memory that the check needs could not be had")
    except Exception as error:  # noqa: BLE001 - libraries for GPUs raise what they like; the judge is told
        return Answer(unable=f"it broke off: {type(error).__name__}: {error}")
    return answer


def _die_with_parent() -> None:
    """Have the kernel end this child when its parent is killed: no check goes on without a runner."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1 and os.environ.get(PARENT, "1") != "1":
        sys.exit(1)


def _write(data: bytes) -> None:
    with os.fdopen(os.dup(int(os.environ[ANSWER_FD])), "wb") as pipe:
        pipe.write(data)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
