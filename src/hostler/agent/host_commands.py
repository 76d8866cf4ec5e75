"""This machine's tools, run as fixed argument vectors with deadlines, and what may become of an act."""

from hostler.agent import child_process


class NotPossibleError(Exception):
    """This body will never do that: not allowed, or not equipped. Nothing has happened."""


class ActFailedError(Exception):
    """It was tried and failed for certain."""


class ResourceHeldError(ActFailedError):
    """Somebody holds what the act is about; nothing was done to it. `gpu_holders` names them."""

    def __init__(self, text: str, holders: tuple[str, ...]) -> None:
        super().__init__(text)
        self.holders = holders


class FateUnknownError(Exception):
    """It was tried and may have worked."""


def act(argv: tuple[str, ...], deadline_s: float) -> str:
    """Run it; what it printed. Raises the errors above: hung (fate unknown), not there (not possible), failed."""
    try:
        done = child_process.run(argv, deadline_s)
    except child_process.HungError as error:
        raise FateUnknownError(str(error)) from error
    except OSError as error:
        raise NotPossibleError(f"{argv[0]}: {error.strerror}") from error
    printed = done.output.decode("utf-8", "backslashreplace")
    if done.code:
        raise ActFailedError(f"{argv[0]} ended with {done.code}: {done.errors or printed.strip()[-300:]}")
    return printed


def say(argv: tuple[str, ...], deadline_s: float) -> str:
    """What a tool printed, or why it did not; at most 2,000 characters."""
    try:
        done = child_process.run(argv, deadline_s)
    except child_process.HungError as error:
        return f"hung: {error}"
    except OSError as error:
        return f"not available: {error.strerror}"
    return done.output.decode("utf-8", "backslashreplace").strip()[:2000]
