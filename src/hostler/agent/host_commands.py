"""Runs this machine's tools as fixed argument vectors with deadlines, and classifies how they failed."""

import re

from hostler.agent import child_process


class NotPossibleError(Exception):
    """Refusal of a machine that is not allowed or not equipped to do it, now or later. Nothing has happened."""


class NeverPossibleError(NotPossibleError):
    """Refusal that no waiting changes. `mend`: what a person has to do first."""

    def __init__(self, text: str, mend: str) -> None:
        super().__init__(text)
        self.mend = mend


class ActFailedError(Exception):
    """The operation was tried and failed for certain."""


class ResourceHeldError(ActFailedError):
    """A process holds what the operation is about; nothing was done to it. `gpu_holders` names them."""

    def __init__(self, text: str, holders: tuple[str, ...]) -> None:
        super().__init__(text)
        self.holders = holders


class FateUnknownError(Exception):
    """The operation was tried and may have worked."""


def act(argv: tuple[str, ...], deadline_s: float, fine: re.Pattern[str] | None = None) -> str:
    """Run it; what it printed. Raises the errors above: hung (fate unknown), not there (not possible), failed.

    `fine`: words of a tool that has done it, whatever its exit status.
    """
    try:
        done = child_process.run(argv, deadline_s)
    except child_process.HungError as error:
        raise FateUnknownError(str(error)) from error
    except FileNotFoundError as error:
        raise NeverPossibleError(f"{argv[0]}: {error.strerror}", f"install {argv[0]} on the node") from error
    except OSError as error:
        raise NotPossibleError(f"{argv[0]}: {error.strerror}") from error
    printed = done.output.decode("utf-8", "backslashreplace")
    if done.code and not (fine and (fine.search(printed) or fine.search(done.errors))):
        raise ActFailedError(f"{argv[0]} ended with {done.code}: {done.errors or printed.strip()[-300:]}")
    return printed


def say(argv: tuple[str, ...], deadline_s: float) -> str:
    """Return a tool's output, or why there is none; at most 2,000 characters."""
    try:
        done = child_process.run(argv, deadline_s)
    except child_process.HungError as error:
        return f"hung: {error}"
    except OSError as error:
        return f"not available: {error.strerror}"
    return done.output.decode("utf-8", "backslashreplace").strip()[:2000]
