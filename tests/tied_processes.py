"""Programs that the kernel ends with the process that started them, also where that one is killed."""

import shutil
import sys

import pytest


def tied(*words: str, signal: str = "KILL") -> tuple[str, ...]:
    """The command, which is sent the signal when the thread that started it ends (PR_SET_PDEATHSIG, `setpriv`)."""
    return ("setpriv", "--pdeathsig", signal, *words)


def skip_where_nothing_can_be_tied() -> None:
    """Skip a test whose programs would outlive a run that is killed."""
    if sys.platform != "linux" or shutil.which("setpriv") is None:
        pytest.skip("no setpriv: apt-get install util-linux")
