"""`hostler kernel-log`: what kernel-log lines mean, without a server."""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from cyclopts import App, Parameter

from hostler.cli.command_errors import unusable
from hostler.cli.input_files import opened, read_text
from hostler.cli.output import dump_json, dump_yaml, table

if TYPE_CHECKING:
    from hostler.core.diagnose.decoded import Decoded

PIECE_CHARS = 60_000
"""Under `kernel_log.TEXT_LIMIT_CHARS`."""
LINE_BYTES = 32_768
"""How much of one line is looked at, far more than the decoder reads of it."""

app = App(name="kernel-log", help="Kernel-log lines.")

Output = Annotated[Literal["table", "jsonl", "json", "yaml"], Parameter(name=("--output", "-o"))]


@app.command
def decode(
    file: Annotated[str, Parameter(help="A log; `-` reads standard input.", allow_leading_hyphen=True)] = "-",
    *,
    output: Output = "table",
    cases: Annotated[
        bool, Parameter(negative=(), help="FILE holds one JSON object a line, each with its log in `line`.")
    ] = False,
) -> int:
    """Say which faults a kernel log reports: code, GPU, recommended action, evidence.

    With `--cases -o jsonl` each case gives one line `{"findings": […]}`, in order.
    """
    if cases:
        text = read_text(file, errors="replace")  # a log may hold anything; what follows is still to be read
        _dump([case_result(line) for line in _cases(text, file)], output)
        return 0
    found = (finding for piece in _pieces(_lines(file)) for finding in findings(piece))
    if output == "table":
        titles = ("KIND", "CODE", "GPU", "ACTION", "SEVERITY", "WHAT")
        keys = ("kind", "code", "pci", "action", "severity", "text")
        table(titles, [[str(f.get(key, "")) or "–" for key in keys] for f in found], empty="no fault is reported")
    else:
        _dump(found, output)
    return 0


def case_result(text: str) -> dict[str, Any]:
    """The findings of one case; where it has several lines also `incidents`, how many bursts they are."""
    from hostler.core.diagnose.bursts import fold
    from hostler.core.diagnose.kernel_log import decode as decoded

    found = tuple(one for piece in _pieces(text.splitlines(keepends=True)) for one in decoded(piece))
    result: dict[str, Any] = {"findings": [_plain(one) for one in found]}
    if "\n" in text.strip():
        result["incidents"] = len(fold(found))
    return result


def findings(text: str) -> list[dict[str, Any]]:
    """Read a log's findings as plain objects: the facts of a line beside the catalogue's."""
    from hostler.core.diagnose.kernel_log import decode as decoded

    return [_plain(one) for one in decoded(text)]


def _plain(one: "Decoded") -> dict[str, Any]:
    own = {
        "kind": one.kind,
        "event": one.event,
        "code": one.code,
        "known": one.known,
        "pci": one.pci,
        "action": one.action,
        "severity": one.severity,
        "category": one.category,
        "condition": one.condition,
        "text": one.text,
        "line": one.line,
        "ambiguous": one.ambiguous,
    }
    if one.code is None:
        del own["known"]
    if one.count > 1:
        own["count"] = one.count
    facts = json.loads(msgspec.json.encode(one.facts))
    return {**facts, **{key: value for key, value in own.items() if value not in (None, "")}}


def _lines(file: str) -> Iterator[str]:
    """The log's lines as they are read, however long it is; what stands behind LINE_BYTES of a line is passed over.

    A log may hold anything; what cannot be decoded is replaced, and what follows is still read.
    """
    with opened(file) as log:
        while raw := log.readline(LINE_BYTES):
            rest = raw
            while rest and not rest.endswith(b"\n"):
                rest = log.readline(LINE_BYTES)
            yield raw.rstrip(b"\n").decode(errors="replace") + "\n"


def _pieces(log: Iterable[str]) -> Iterator[str]:
    """The log in pieces of whole lines that the decoder reads to their end; a report may span lines."""
    lines: list[str] = []
    size = 0
    for line in log:
        if size + len(line) > PIECE_CHARS:
            yield "".join(lines)
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    yield "".join(lines)


def _cases(text: str, file: str) -> Iterator[str]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            case = json.loads(line)["line"]
        except (ValueError, KeyError, TypeError) as error:
            raise unusable(f"{file}:{number}: not a case: {error}", 'write {"line": "…"} on each line') from error
        if not isinstance(case, str):
            raise unusable(f"{file}:{number}: not a case: its line is not text", 'write {"line": "…"} on each line')
        yield case


def _dump(found: Iterable[dict[str, Any]], output: str) -> None:
    match output:
        case "json":
            dump_json({"items": list(found)})
        case "yaml":
            dump_yaml({"items": list(found)})
        case _:
            for one in found:
                print(json.dumps(one, ensure_ascii=False))
