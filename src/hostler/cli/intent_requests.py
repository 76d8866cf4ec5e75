"""Sends requests for acts and prints the answers: what was granted, refused, or would happen."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hostler.cli.command_errors import CommandError, code_of, unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.intent_progress import follow
from hostler.cli.options import Pick, Why
from hostler.cli.output import dump_json, dump_yaml, say, shown
from hostler.client import ApiError, routes

if TYPE_CHECKING:
    from hostler.client import Client
    from hostler.core.state.verbs.facts import Verb

TARGETS_MAX = 1_000
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


def ask(client: "Client", why: Why, requests: Sequence[IntentRequest], output: str) -> ExitCode:
    """Have each request answered, and followed to its end where asked. Returns the first exit status that is not ok."""
    worst, answers = ExitCode.ok, []
    for request in requests:
        answer, code = _answered(client, why, request, why.key_for(request.target if len(requests) > 1 else ""))
        answers.append({"verb": request.verb, "target": request.target, **answer})
        if output in ("table", "wide"):
            _print(request, answer, why.dry_run)
        elif output == "name" and code is ExitCode.ok:
            print(shown(request.target))
        elif code is not ExitCode.ok:
            say(f"{request.target}: {answer['text']}")
        handle = (answer.get("detail") or {}).get("intent", "")
        if why.wait and handle and not why.dry_run and code in (ExitCode.ok, ExitCode.waits):
            code = follow(client, handle)
        worst = worst or code
    say_brake(*answers)
    if output == "json":
        dump_json({"items": answers})
    elif output == "yaml":
        dump_yaml({"items": answers})
    return worst


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
