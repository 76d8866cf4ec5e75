"""Completion scripts of the command line, made once a process: to read every command's options takes seconds."""

import io
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import cache

import pytest


@pytest.fixture(scope="session")
def completion_script() -> Iterator[Callable[[str], str]]:
    """Gives what `hostler completion SHELL` prints; every command and text is read once for all shells.

    Tests that take it are of the group "completion", so that one worker makes them.
    """
    from cyclopts.completion import _base, bash, fish, zsh  # noqa: PLC0415 - few runs need it

    from hostler.cli.main import build  # noqa: PLC0415
    from tests.cli_api import hostler  # noqa: PLC0415
    from tests.conftest import read_docstrings_once  # noqa: PLC0415

    @cache
    def printed(shell: str) -> str:
        with read_docstrings_once(), redirect_stdout(io.StringIO()) as out:
            assert hostler("completion", shell) == 0
        return out.getvalue()

    plain, read = cache(_base.strip_markup), cache(lambda: _base.extract_completion_data(build()))
    with pytest.MonkeyPatch.context() as patch:
        for module in (_base, fish, zsh):
            patch.setattr(module, "strip_markup", plain)
        for module in (bash, fish, zsh):
            patch.setattr(module, "extract_completion_data", lambda _app: read())
        yield printed
