"""Finds the server for a command: a small file that `hostler up` writes, overruled by options and environment."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from hostler.cli.command_errors import unusable


@dataclass(frozen=True)
class Context:
    """The server that is meant when a command names none, and the file with the token for it."""

    server: str = ""
    token_file: str = ""
    ca: str = ""


def path() -> Path:
    """The context file: HOSTLER_CONTEXT, or hostler/context.json in the user's configuration directory."""
    if named := os.environ.get("HOSTLER_CONTEXT"):
        return Path(named)
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "hostler" / "context.json"


def read() -> Context:
    """The context as written, empty where there is none. Raises CommandError on a file that cannot be read."""
    where = path()
    try:
        found = json.loads(where.read_text())
    except FileNotFoundError:
        return Context()
    except (OSError, ValueError) as error:
        raise unusable(f"{where}: {error}", "remove the file, or start `hostler up` again, which writes it") from error
    if not isinstance(found, dict):
        raise unusable(f"{where}: not an object", 'write {"server": "http://…", "token_file": "…"}')
    return Context(**{key: str(found[key]) for key in ("server", "token_file", "ca") if key in found})


def write(context: Context) -> Path:
    """Make this the server that commands mean. The file is replaced whole and readable by its owner only."""
    where = path()
    where.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = where.with_name(f"{where.name}.{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.write_text(json.dumps(asdict(context), indent=2) + "\n")
    fresh.replace(where)
    return where
