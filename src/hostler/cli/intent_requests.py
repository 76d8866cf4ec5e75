"""Sends requests for acts and prints the answers: what was granted, refused, or would happen."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hostler.cli.command_errors import CommandError, code_of, unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.intent_progress import IntentFollower, code_of_progress, told
from hostler.cli.options import Pick, Why
from hostler.cli.output import dump_json, dump_yaml, say, shown
from hostler.client import ApiError, routes

if TYPE_CHECKING:
    from hostler.client import Client
    from hostler.client.answers import IntentProgress, NodeProgress
    from hostler.core.state.verbs.facts import Verb

TARGETS_MAX = 1_000
_FOLLOWED = (ExitCode.ok, ExitCode.waits)
_GOES_ON = (ExitCode.refused, ExitCode.not_found, ExitCode.usage)
"""Exit codes that concern one target only: the others are asked for all the same."""


@dataclass(frozen=True)
class IntentRequest:
    """One act on one target; `nodes` with the target "nodes" are one act on all."""

    act: "Verb"
    target: str
    nodes: tuple[str, ...] = ()

    @property
    def verb(self) -> str:
        """The verb as people write it."""
        return str(self.act.__struct_config__.tag)


def targets_of(client: "Client", named: Sequence[str], pick: Pick) -> list[str]:
    """The targets by name and by selector. Raises CommandError where there are none, or more than allowed."""
    found = list(dict.fromkeys(named))
    if pick.selector:
        if not pick.selector.strip():
            raise unusable("an empty selector would mean every node", "write KEY=VALUE")
        chosen = [node["id"] for node in client.pages(routes.NODES, {"selector": pick.selector}, pick.at_most + 1)]
        if len(chosen) > pick.at_most:
            raise CommandError(
                ExitCode.refused,
                f"-l {pick.selector} finds more than {pick.at_most} nodes; nothing was asked for",
                "look with `hostler node list`, then allow them with --at-most N",
            )
        found.extend(node for node in chosen if node not in found)
    if not found:
        raise unusable("no target" + (f" matches {pick.selector}" if pick.selector else ""), "name a node, or use -l")
    if len(found) > TARGETS_MAX:
        raise unusable(f"{len(found)} targets", f"name at most {TARGETS_MAX}")
    return found


@dataclass
class _Asked:
    """One request with its answer, and how far it has come where it is followed."""

    request: IntentRequest
    answer: dict[str, Any]
    code: ExitCode
    progress: "IntentProgress | None" = None

    @property
    def handle(self) -> str:
        """The intent's id, "" where none is to be followed."""
        return str((self.answer.get("detail") or {}).get("intent", "")) if self.code in _FOLLOWED else ""


def ask(client: "Client", why: Why, requests: Sequence[IntentRequest], output: str) -> ExitCode:
    """Have every request answered, then all of them followed to their ends where asked.

    Returns the first exit status that is neither ok nor a wait, else that of what still waits.
    """
    asked: list[_Asked] = []
    for request in requests:
        answer, code = _answered(client, why, request, why.key_for(request.target if len(requests) > 1 else ""))
        asked.append(_Asked(request, answer, code))
        if output in ("table", "wide"):
            _print(request, answer, why.dry_run)
        elif output != "name" and code is not ExitCode.ok:
            say(f"{request.target}: {answer['text']}")
    try:
        if why.wait and not why.dry_run:
            _follow(client, asked, why.wait_s)
    finally:
        _end(asked, output, why.dry_run)
    return _worst([one.code for one in asked])


def _worst(codes: Sequence[ExitCode]) -> ExitCode:
    bad = next((code for code in codes if code not in _FOLLOWED), None)
    return bad or (ExitCode.waits if ExitCode.waits in codes else ExitCode.ok)


def _follow(client: "Client", asked: Sequence[_Asked], limit_s: float | None) -> None:
    """Follow what was asked for; what is known of each is kept whatever ends the following."""
    follower = IntentFollower(client)
    try:
        follower.follow([one.handle for one in asked if one.handle], limit_s)
    finally:
        for one in asked:
            if (found := follower.found.get(one.handle)) is not None:
                one.progress, one.code = found, code_of_progress(found)


def _end(asked: Sequence[_Asked], output: str, dry_run: bool) -> None:
    """Print the outcome of all of it: a table where it is of several nodes, and how it is called off."""
    answers = [{"verb": one.request.verb, "target": one.request.target, **one.answer} for one in asked]
    say_brake(*answers)
    if output in ("json", "yaml"):
        items = [answer | _progress_of(one) for answer, one in zip(answers, asked, strict=True)]
        (dump_json if output == "json" else dump_yaml)({"items": items})
    elif output == "name":
        for one in asked:
            if one.code is ExitCode.ok:
                print(shown(one.request.target))
            else:
                say(f"{one.request.target}: {one.answer['text']}")
    elif not dry_run:
        rows = [row for one in asked for row in _rows(one)]
        if len(rows) > 1:
            _table(rows)
        if way_back := _way_back(asked):
            print(shown(f"to call it off: {way_back}"))
    sys.stdout.flush()


def _progress_of(one: _Asked) -> dict[str, Any]:
    from msgspec import to_builtins

    return {} if one.progress is None else {"progress": to_builtins(one.progress)}


def _rows(one: _Asked) -> list[tuple[str, str, str]]:
    """Node, result and why, of each node that the request concerns: done only where it was seen done."""
    found, target = one.progress, one.request.target
    if found is None:
        words = {ExitCode.ok: "asked for", ExitCode.waits: "waits"}
        return [(target, words.get(one.code, "refused"), str(one.answer["text"]))]
    if found.nodes:
        return [(row.node, _RESULTS.get(row.state, row.state), _why(row)) for row in found.nodes]
    words = {ExitCode.ok: "done", ExitCode.waits: "waits"}
    return [(target, words.get(one.code, found.state.replace("_", " ")), found.text)]


_RESULTS = {"waiting": "waits", "running": "waits"}


def _why(row: "NodeProgress") -> str:
    return told(row).partition(", ")[2]


def _table(rows: Sequence[tuple[str, str, str]]) -> None:
    rows = [(node, result, " ".join(why.split())) for node, result, why in rows]
    title = ("NODE", "RESULT", "WHY")
    widths = [max(len(row[column]) for row in (title, *rows)) for column in (0, 1)]
    for row in (title, *rows):
        print(shown(f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}".rstrip()))


def _way_back(asked: Sequence[_Asked]) -> str:
    """The command that calls all of it off, as far as it is open or lasts."""
    ways = [str(way) for one in asked if (way := (one.answer.get("detail") or {}).get("call_off"))]
    if len(ways) < 2:
        return next(iter(ways), "")
    first = ways[0].split(asked[0].request.target)
    same = all(way == f"{one.request.target}".join(first) for one, way in zip(asked, ways, strict=False))
    names = " ".join(one.request.target for one in asked)
    return names.join(first) if same and len(ways) == len(asked) and len(first) == 2 else "; ".join(ways[:5])


def say_brake(*answers: dict[str, Any]) -> None:
    """Say that the storm brake is latched where an answer says so: whoever asks for anything is to know."""
    if latched := next((b for answer in answers if (b := (answer.get("detail") or {}).get("brake"))), ""):
        say(f"STORM BRAKE LATCHED: {latched} (hostler brake release --reason …)")


def _answered(client: "Client", why: Why, request: IntentRequest, key: str) -> tuple[dict[str, Any], ExitCode]:
    from msgspec import to_builtins
    from msgspec.structs import asdict

    act = to_builtins(request.act)
    more = {**act, "nodes": request.nodes, "dry_run": why.dry_run, "key": key}
    try:
        answer = asdict(client.ask(more.pop("verb"), request.target, why.reason, **more))
    except ApiError as error:
        if (code := code_of(error)) not in _GOES_ON:
            raise
        return {"granted": False, "text": str(error), "detail": error.facts}, code
    return answer, ExitCode.ok if answer["granted"] else ExitCode.waits


def _print(request: IntentRequest, answer: dict[str, Any], dry_run: bool) -> None:
    text = f"{request.target}: {answer['text']}"
    if not answer["granted"]:
        say(text)
        return
    print(shown(text, breaks=True))
    if dry_run:
        _radius(answer.get("detail") or {})
    sys.stdout.flush()


def _radius(detail: dict[str, str]) -> None:
    """The plan and whom it disturbs, as the core worked it out."""
    nodes = [node for node in detail.get("nodes", "").split(",") if node]
    rows = (
        ("plan", detail.get("plan", "")),
        ("approval", detail.get("approval", "")),
        ("disturbs", f"{len(nodes)} node(s), {detail.get('gpus', '0')} GPUs: {', '.join(nodes)}" if nodes else ""),
        ("waits for", detail.get("waits_for", "") or ("nothing: it would begin at once" if nodes else "")),
        ("not known", detail.get("not_known", "")),
    )
    for title, text in rows:
        if text:
            print(f"  {title:<10} {shown(text)}")
