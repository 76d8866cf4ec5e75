"""Reads the files that people hand to commands: inventories and configuration documents."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from hostler.cli.command_errors import unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.intent_progress import IntentFollower, code_of_progress
from hostler.cli.intent_requests import say_brake
from hostler.cli.options import Why
from hostler.cli.output import dump_json, dump_yaml, shown

if TYPE_CHECKING:
    from hostler.client import Client

MAX_BYTES = 64 * 1_048_576


@contextmanager
def opened(file: str) -> Iterator[BinaryIO]:
    """A file's bytes, standard input for "-". Raises CommandError where it cannot be opened or read."""
    try:
        if file == "-":
            yield sys.stdin.buffer
        else:
            with Path(file).open("rb") as stream:
                yield stream
    except OSError as error:
        raise unusable(f"{file}: {error.strerror}", "name a file that you can read") from error


def read_text(file: str, errors: str = "strict") -> str:
    """A file's text, standard input for "-". Raises CommandError. `errors` as in bytes.decode."""
    with opened(file) as stream:
        data = stream.read(MAX_BYTES + 1)
    try:
        text = data.decode(errors=errors)
    except UnicodeDecodeError as error:
        raise unusable(f"{file}: not UTF-8 at byte {error.start}", "save it as UTF-8") from error
    if len(data) > MAX_BYTES:
        raise unusable(f"{file}: larger than {MAX_BYTES} bytes", "split it")
    return text


def read_documents(files: tuple[str, ...]) -> dict[str, str]:
    """Configuration documents by file name. Raises CommandError for none, or two of one name."""
    if not files:
        raise unusable("no document is named", "name one or more YAML files")
    found: dict[str, str] = {}
    for file in files:
        name = "stdin" if file == "-" else Path(file).name
        if name in found:
            raise unusable(f"{file}: another document has the name {name} too", "rename one")
        found[name] = read_text(file)
    return found


def read_entries(file: str, what: str) -> list[dict[str, Any]]:
    """The entries of an inventory of nodes or assets. Raises CommandError where it is no JSON or YAML list."""
    text = read_text(file)
    found = _json(text, file) if text.lstrip()[:1] in ("[", "{") else _yaml(text, file)
    if isinstance(found, dict) and isinstance(found.get(what), list):
        found = found[what]
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise unusable(f"{file}: not a list of {what}", f"write a list of objects, or one under the key '{what}'")
    return found


def read_yaml(file: str) -> Any:
    """Content of a YAML file. Raises CommandError, with the line, where it is no YAML."""
    return _yaml(read_text(file), file)


def _json(text: str, file: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise unusable(f"{file}:{error.lineno}: {error.msg}", "correct the JSON there") from error


def _yaml(text: str, file: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or str(error)
        raise unusable(f"{file}{line}: {what}", "correct the YAML there") from error


@contextmanager
def entries_of(file: str, command: str) -> Iterator[None]:
    """Names the file, and the command whose help has the fields, where the server cannot read an entry of it."""
    from hostler.client import ApiError

    try:
        yield
    except ApiError as error:
        if error.problem.get("error") != "malformed":
            raise
        what = error.what.replace("Object contains unknown field", "no such field:").replace("`$.", "`")
        raise unusable(f"{file}: {what}", f"`{command} --help` names the fields of an entry") from error


def submit(client: "Client", path: str, body: dict[str, Any], why: Why, output: str) -> ExitCode:
    """Send documents with the reason for them, and print what the server says."""
    also = {"reason": why.reason, "dry_run": why.dry_run, "key": why.key_for()}
    answer = client.post(path, {**body, **also})
    _tell(answer, output)
    handle = (answer.get("detail") or {}).get("intent", "")
    if not why.wait or why.dry_run or not handle:
        return ExitCode.ok if answer["granted"] else ExitCode.waits
    follower = IntentFollower(client)
    follower.follow([handle], why.wait_s)
    return code_of_progress(follower.found[handle])


def effect_of(detail: dict[str, str]) -> list[tuple[str, str]]:
    """Show what a configuration would change, as a dry run answers."""
    rows = [("disturbs", f"{detail['disturbs']} node(s): {detail['nodes']}")] if detail.get("nodes") else []
    more = (("changes", "pools"), ("changes", "design"), ("approval", "approval"))
    return [*rows, *((title, detail[key]) for title, key in more if detail.get(key))]


def _tell(answer: dict[str, Any], output: str) -> None:
    """Print the answer to a request that was granted."""
    say_brake(answer)
    match output:
        case "json":
            dump_json(answer)
        case "yaml":
            dump_yaml(answer)
        case _:
            print(shown(str(answer.get("text", "done")), breaks=True))
            if way_back := (answer.get("detail") or {}).get("call_off"):
                print(shown(f"to call it off: {way_back}"))
            for title, text in effect_of(answer.get("detail") or {}):
                print(f"  {title:<10} {shown(text)}")
