"""`hostler completion` and `hostler version`."""

from typing import Literal


def completion(shell: Literal["bash", "zsh", "fish"]) -> int:
    """Print a completion script: `hostler completion bash > ~/.local/share/bash-completion/completions/hostler`."""
    from hostler.cli.main import build

    print(build().generate_completion(shell=shell))
    return 0


def version() -> int:
    """Print the version."""
    from importlib.metadata import version as of

    print(of("hostler"))
    return 0
