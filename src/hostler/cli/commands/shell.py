"""`hostler completion` and `hostler version`, and the names that a shell completes."""

from typing import TYPE_CHECKING, Literal

from hostler.cli.options import CONNECT, Connect

if TYPE_CHECKING:
    from hostler.cli.list_view import View

SHOWN = 50
PATIENCE_S = 2.0
"""A shell that completes waits for this; then it completes nothing."""

Shell = Literal["bash", "zsh", "fish"]

_NAMED: dict[Shell, str] = {
    "bash": """
_hostler_names() {
  local cur="${COMP_WORDS[COMP_CWORD]}"
  _hostler "$@"
  if [[ ${#COMPREPLY[@]} -eq 0 && $COMP_CWORD -ge 3 && "$cur" != -* && "${COMP_WORDS[COMP_CWORD-1]}" != -* ]]; then
    mapfile -t COMPREPLY < <(hostler complete "${COMP_WORDS[1]}" "$cur" 2>/dev/null)
  fi
}
complete -F _hostler_names hostler
""",
    "zsh": """
_hostler_names() {
  _cyclopts_hostler "$@" && return
  if (( CURRENT >= 4 )) && [[ "${words[CURRENT]}" != -* && "${words[CURRENT-1]}" != -* ]]; then
    compadd -- ${(f)"$(hostler complete "${words[2]}" "${words[CURRENT]}" 2>/dev/null)"}
  fi
}
if [[ "${funcstack[1]}" == _hostler ]]; then
  _hostler_names "$@"
fi
compdef _hostler_names hostler
""",
    "fish": """
complete -c hostler -n 'test (count (commandline -opc)) -ge 3' \\
  -a '(hostler complete (commandline -opc)[2] (commandline -ct) 2>/dev/null)'
""",
}
"""Lines after the generated script: where it has nothing to offer, names are asked for at the server."""


def completion(shell: Shell) -> int:
    """Print a completion script: `hostler completion bash > ~/.local/share/bash-completion/completions/hostler`.

    It completes commands and options, and asks the server for the names of nodes, tickets, holds and the like.
    """
    from hostler.cli.main import build

    print(build().generate_completion(shell=shell))
    print(_NAMED[shell])
    return 0


def complete(noun: str, word: str = "", *, connect: Connect = CONNECT) -> int:
    """Print the names that a word of `hostler NOUN COMMAND` may become; nothing where nobody answers in time."""
    from hostler.cli.output import shown
    from hostler.client import HostlerError

    view = _views().get(noun)
    if view is None:
        return 0
    query = {"q": word} if noun == "node" else {}
    try:
        client = connect.client(PATIENCE_S)
        names = [view.name_of(item) for item in client.pages(view.path, query, 0 if not query else SHOWN)]
    except HostlerError:
        return 0
    for name in [name for name in names if name.startswith(word)][:SHOWN]:
        print(shown(name))
    return 0


def _views() -> "dict[str, View]":
    """Lists in which names are looked for, by the noun of the command."""
    from hostler.cli import table_columns as views
    from hostler.cli.job_columns import JOBS

    return {
        "node": views.NODES,
        "job": JOBS,
        "ticket": views.TICKETS,
        "hold": views.HOLDS,
        "incident": views.INCIDENTS,
        "approval": views.APPROVALS,
        "rollout": views.ROLLOUTS,
        "fabric": views.FABRICS,
        "asset": views.ASSETS,
    }


def version() -> int:
    """Print the version."""
    from importlib.metadata import version as of

    print(of("hostler"))
    return 0
