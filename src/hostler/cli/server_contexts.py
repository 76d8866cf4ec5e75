"""Finds the server for a command: a small file of named contexts, overruled by options and environment."""

import json
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from hostler.cli.command_errors import CommandError, unusable
from hostler.cli.exit_codes import ExitCode

_FIELDS = ("server", "token_file", "ca")


@dataclass(frozen=True)
class Context:
    """A server that is meant when a command names none, the file with the token for it, and its authority."""

    server: str = ""
    token_file: str = ""
    ca: str = ""


@dataclass(frozen=True)
class Contexts:
    """All contexts by name, and the name of the one that commands mean."""

    current: str = ""
    contexts: dict[str, Context] = field(default_factory=dict)

    def of(self, name: str = "") -> Context:
        """The context of that name, the current one where none is given; empty where there is none.

        Raises CommandError on a name that is not known.
        """
        wanted = name or self.current
        if wanted in self.contexts:
            return self.contexts[wanted]
        if name:
            known = ", ".join(self.contexts) or "none"
            raise CommandError(ExitCode.not_found, f"no context '{name}'", f"known: {known}; see `hostler context add`")
        return Context()


def path() -> Path:
    """The file: HOSTLER_CONFIG, or hostler/contexts.json in the user's configuration directory."""
    if named := os.environ.get("HOSTLER_CONFIG"):
        return Path(named)
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "hostler" / "contexts.json"


def read() -> Contexts:
    """The contexts as written, none where there is no file. Raises CommandError on a file that cannot be read."""
    where = path()
    try:
        found = json.loads(where.read_text())
    except FileNotFoundError:
        return Contexts()
    except (OSError, ValueError) as error:
        raise unusable(f"{where}: {error}", "correct the file, or remove it and run `hostler context add`") from error
    if not isinstance(found, dict) or not isinstance(named := found.get("contexts"), dict):
        raise unusable(f"{where}: no contexts", 'write {"current": "NAME", "contexts": {"NAME": {"server": "…"}}}')
    return Contexts(str(found.get("current", "")), {str(name): _context(where, one) for name, one in named.items()})


def _context(where: Path, found: Any) -> Context:
    if not isinstance(found, dict):
        raise unusable(f"{where}: a context is not an object", 'write {"server": "http://…", "token_file": "…"}')
    return Context(**{key: str(found[key]) for key in _FIELDS if key in found})


def use(name: str, context: Context | None = None) -> Path:
    """Make this the context that commands mean, as known or as given. Raises CommandError on an unknown one."""
    known = read()
    found = context or known.of(name)
    return _write(replace(known, current=name, contexts={**known.contexts, name: found}))


def remove(name: str) -> Path:
    """Forget a context; commands mean none where it was the current one. Raises CommandError on an unknown one."""
    known = read()
    known.of(name)
    rest = {key: value for key, value in known.contexts.items() if key != name}
    return _write(Contexts("" if known.current == name else known.current, rest))


def _write(contexts: Contexts) -> Path:
    """Replace the file whole; only its owner may read it."""
    where = path()
    where.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = where.with_name(f"{where.name}.{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.write_text(json.dumps(asdict(contexts), indent=2) + "\n")
    fresh.replace(where)
    return where
