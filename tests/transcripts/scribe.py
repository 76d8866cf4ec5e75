"""Writes down what goes into the controller loop and what comes out of it, as an operator would read it.

A line begins with `>` for an input, `=` for a record, `->` for what is sent to a driver, and `<` for an answer. Moments
are of the story's clock: day of the month and time. Readings and heartbeats that say nothing new are left out, and
so are checksums of configurations, which change with every row of the default policy.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import assert_never

from hostler.controller.inputs import (
    AgentAhead,
    AgentHeard,
    AgentRefused,
    AgentSilent,
    AuditSeen,
    BootAsked,
    ClockSeen,
    CompanySought,
    DiskSeen,
    FabricSeen,
    FellowsSeen,
    Input,
    IntentAsked,
    LinksSeen,
    NodeSeen,
    Observed,
    RackSeen,
    Replied,
    SubnetSeen,
    Tick,
    TrendsSeen,
    WorkSeen,
)
from hostler.controller.step_output import Reply, Send, StepOutput
from hostler.core.report.fabric_sentences import looked
from hostler.core.report.sentences import sentence
from hostler.core.state import events as e
from hostler.core.state import version_2
from hostler.core.state.configuration import Configuration
from hostler.core.state.model import Node, Observation
from tests.kit import Drive

CHECKSUM = re.compile(r"configuration [0-9a-f]{12}\b")
LEGEND = "# > input   = record   -> sent to a driver   < answer"


class Scribe(Drive):
    """A drive that keeps a transcript, from its controller's first record on."""

    def __init__(self, config: Configuration, nodes: Iterable[Node]) -> None:
        self.lines: list[str] = []
        self._at: datetime | None = None
        self._last: dict[tuple[str, str], str] = {}
        super().__init__(config, nodes)

    def note(self, what: str) -> None:
        """Write what the story does next."""
        self.lines += ["", f"# {what}"]
        self._at = None

    def begin_here(self) -> None:
        """Leave out what was written so far: how the world of the story came to be."""
        self.lines.clear()
        self._at = None

    def step(self, *inputs: Input) -> StepOutput:
        """Write down what goes in, then take the step."""
        self._write(f"> {text}" for one in inputs for text in self._said(one))
        return super().step(*inputs)

    def text(self) -> str:
        """The transcript."""
        whole = "\n".join((LEGEND, "", *self.lines)).replace("\n\n\n", "\n\n") + "\n"
        return CHECKSUM.sub("configuration …", whole)

    def _complete(self, ready: StepOutput) -> None:
        self._write(_output(ready))
        super()._complete(ready)

    def _write(self, told: Iterable[str]) -> None:
        for line in told:
            moment = "" if self._at == self.now else f"{self.now:%d %H:%M:%S}"
            self._at = self.now
            self.lines.append(f"{moment:11} {line}")

    def _said(self, one: Input) -> Iterator[str]:
        match one:
            case NodeSeen(node=node):
                yield from self._fresh((node, "reading"), _reading(one))
            case AgentHeard(node=node):
                yield from self._fresh((node, "agent"), f"the agent of {node} is heard in boot {one.boot_id}")
            case WorkSeen():
                for view in one.views:
                    works = ", ".join(w.id for w in view.workloads) or "no work"
                    yield from self._fresh((view.node, "work"), f"cluster {one.cluster} shows on {view.node}: {works}")
            case Replied(outcome=outcome):
                kind = next(send.operation.kind for send in self.sent if send.operation.id == outcome.operation)
                verdict = f" ({outcome.facts['verdict']})" if "verdict" in outcome.facts else ""
                yield f"{outcome.node}: {kind} is {outcome.result}{verdict}"
            case Tick():
                pass
            case _:
                yield _told(one)

    def _fresh(self, key: tuple[str, str], text: str) -> Iterator[str]:
        if self._last.get(key) != text:
            self._last[key] = text
            yield text


def _told(one: Input) -> str:  # noqa: C901, PLR0911, PLR0912 - one flat table of cases
    match one:
        case Observed(node=node, observations=observations):
            return "; ".join(f"{node}: {_observation(seen)}" for seen in observations)
        case IntentAsked(intent=intent):
            args = "".join(f" {name}={value}" for name, value in intent.args.items() if len(value) < 80)
            return f"{intent.person} asks: {intent.verb} {intent.target}{args}"
        case BootAsked(request=asked):
            return f"{asked.address} asks for {asked.what} of {asked.node or asked.mac}"
        case AgentSilent(node=node):
            return f"the agent of {node} is not heard any more"
        case AgentRefused(node=node, text=text):
            return f"the agent of {node} is refused: {text}"
        case AgentAhead(node=node):
            return f"the agent of {node} was read further than is recorded"
        case FabricSeen(report=report):
            return f"network {report.fabric} {looked(report.look)}"
        case LinksSeen(round=seen):
            return f"{seen.ports} ports of network {seen.fabric} were read, {len(seen.faults)} links with a fault"
        case SubnetSeen(reading=reading):
            return f"the managers of network {reading.fabric} were looked at"
        case RackSeen(asset=asset):
            return f"{asset} was looked at"
        case CompanySought(node=node):
            return f"{node} is at its check and has nobody to meet"
        case (
            AuditSeen()
            | DiskSeen()
            | TrendsSeen()
            | ClockSeen()
            | FellowsSeen()
            | Tick()
            | NodeSeen()
            | AgentHeard()
            | WorkSeen()
            | Replied()
        ):
            return type(one).__name__
        case _:
            assert_never(one)


def _observation(seen: Observation) -> str:
    if seen.parts:
        return f"{seen.kind} of {len(seen.parts)} parts"
    return f"{seen.kind} {seen.text or dict(seen.facts)}"


def _reading(one: NodeSeen) -> str:
    ready = {True: ", ready", False: ", not ready", None: ""}[one.ready]
    bmc = {True: ", BMC unreachable", False: ", BMC reachable", None: ""}[one.bmc_unreachable]
    return f"{one.node}: power {one.power or 'unread'}{ready}{bmc}"


def _output(ready: StepOutput) -> Iterator[str]:
    yield from (f"= {_record(record.event)}" for record in ready.batch.records)
    yield from (f"-> {_send(send)}" for send in ready.sends)
    yield from (f"< {_reply(reply)}" for reply in ready.replies if not reply.acknowledged)


def _record(event: e.Event) -> str:
    """The event's sentence, behind its subject where that is one node or the like."""
    told, subjects = sentence(event), tuple(e.subjects_of(event))
    return f"{subjects[0]}: {told}" if len(subjects) == 1 else told


def _send(send: Send) -> str:
    operation = send.operation
    limit_s = (operation.deadline - operation.started).total_seconds()
    words = version_2.act_down(operation.act)
    args = "".join(f" {name}={value}" for name, value in words.items() if name != "expects" and len(value) < 60)
    return f"{send.how} {operation.kind} on {operation.node}{args}, within {limit_s:g} s"


def _reply(reply: Reply) -> str:
    return f"{'granted' if reply.granted else 'refused'}: {reply.text}"
