"""Machines of five kinds around the real loop, and a person who types what is printed, word for word.

A machine answers as its real driver does: a node without a BMC is refused with the driver's text, a dead BMC never
answers, and an agent that may not act refuses. `Terminal` sends each command line through the real CLI.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from aiohttp import web
from msgspec.structs import replace

from hostler.agent.machine import NEED_PERMISSION
from hostler.agent.node_operations import KNOWN_KINDS
from hostler.cli.exit_codes import ExitCode
from hostler.controller.inputs import AgentHeard, Input, IntentAsked, NodeSeen, Observed, Replied
from hostler.controller.step_output import Reply, Send, StepOutput
from hostler.core.state.assets import Binding
from hostler.core.state.configuration import Configuration
from hostler.core.state.intent import Intent
from hostler.core.state.live_state import AgentVerbs
from hostler.core.state.model import Facts, Node, Outcome, Phase
from hostler.core.state.packed_strings import pairs
from hostler.core.state.verbs.every import VERBS
from hostler.core.tables.operations import OPERATIONS
from hostler.server.acts import act_made, kind_named, verb_in
from tests.cli_api import Asked, FakeApi, hostler, serving
from tests.kit import NOW, Drive, a_node


class Kind(StrEnum):
    """Ways in which a machine can be reached."""

    sound = "sound BMC"
    none = "no BMC"
    dead = "dead BMC"
    mute = "agent that may not act"
    bare = "no BMC, agent that may not act"

    @property
    def acts(self) -> bool:
        return self not in (Kind.mute, Kind.bare)


KINDS = tuple(Kind)
NO_LEAVE: Facts = {"unread.erase": "this agent was started without --allow-actions"}
BMC_DEAD = "cannot connect to host bmc:443"


def a_machine(kind: Kind, node_id: str = "a", **fields: Any) -> Node:
    """A node of this kind; its serial number is known in any case."""
    bmc = () if kind in (Kind.none, Kind.bare) else (Binding("bmc", f"https://bmc/{node_id}", NOW),)
    told = () if kind.acts else tuple((f"agent/{name}", str(text)) for name, text in NO_LEAVE.items())
    fields = {"hardware": pairs(told), "hardware_boots": (("agent", f"{node_id}-b1"),), **fields} if told else fields
    return a_node(node_id, bindings=(Binding("serial", f"S-{node_id}", NOW), *bmc), **fields)


class Machines(Drive):
    """A Drive whose machines are all of one kind."""

    def __init__(self, kind: Kind, config: Configuration, nodes: list[Node]) -> None:
        self.kind = kind
        self.pulled: set[str] = set()
        self.dead: set[str] = set()
        super().__init__(config, nodes)

    def step(self, *inputs: Input) -> StepOutput:
        return super().step(*(self._as_seen(one) for one in inputs))

    def _as_seen(self, one: Input) -> Input:
        """The look at a BMC as this kind of machine shows it."""
        if isinstance(one, AgentHeard):
            return replace(one, verbs=AgentVerbs(KNOWN_KINDS, () if self.kind.acts else NEED_PERMISSION))
        if not isinstance(one, NodeSeen) or not one.power:
            return one
        if self.kind in (Kind.none, Kind.bare):
            return replace(one, power="")
        if self._is_silent(one.node):
            return replace(one, power="unknown", bmc_unreachable=True, bmc_says=BMC_DEAD)
        return replace(one, bmc_unreachable=False)

    def _is_silent(self, node_id: str) -> bool:
        """Whether its BMC does not answer."""
        return self.kind is Kind.dead or node_id in self.pulled | self.dead

    def serve(self, send: Send) -> None:
        operation, kind = send.operation, OPERATIONS[send.operation.kind]
        if kind.port == "bmc" and send.how != "revoke":
            if self.kind in (Kind.none, Kind.bare):
                said = f"node {operation.node} has no bmc binding; record its BMC's address first"
                self._answer(send, "refused" if send.how == "perform" else "unknown", said)
                return
            if self._is_silent(operation.node):
                self._answer(send, "unknown", BMC_DEAD)
                return
        if kind.port == "agent" and send.how != "revoke":
            if not self.power.get(operation.node) or operation.node in self.silent:
                return  # the order lies in its mailbox
            if not self.kind.acts and operation.kind in NEED_PERMISSION and send.how == "perform":
                said = f"{operation.kind}: this agent was started without --allow-actions"
                self._answer(send, "refused", said)
                return
        super().serve(send)

    def _answer(self, send: Send, result: str, detail: str) -> None:
        operation = send.operation
        self.performed[operation.id, operation.attempt] += send.how == "perform"
        outcome = Outcome(operation.id, operation.node, result, detail, {}, attempt=operation.attempt)
        self.step(Replied(outcome))

    # --- hands

    def pull_cords(self, node_id: str = "a") -> None:
        """All cords are out: BMC and agent are silent."""
        self.power[node_id] = False
        self.pulled.add(node_id)
        self.silence(node_id)
        self.step(NodeSeen(node_id, "off"))

    def _parts_of(self, node_id: str) -> list[Input]:
        """The inventory as an agent of this kind tells it."""
        told = super()._parts_of(node_id)
        if self.kind.acts:
            return told
        return [
            replace(one, observations=tuple(replace(o, facts=o.facts | NO_LEAVE) for o in one.observations))
            if isinstance(one, Observed)
            else one
            for one in told
        ]

    def put_cords_back(self, node_id: str = "a") -> None:
        """The cords are in, and the power button is pressed: the machine boots."""
        self.pulled.discard(node_id)
        self.silent.discard(node_id)
        self.power[node_id] = True
        self.boots[node_id] += 1
        heard = AgentHeard(node_id, self.boot_of(node_id), self.profiles.get(node_id))
        self.step(NodeSeen(node_id, "on"), heard, *self._parts_of(node_id))


_COMMAND = re.compile(r"hostler (?:[a-z-]+ )+[^`;,()\n]*")
_NOUNS = {kind.facts.command.split()[0] for kind in VERBS.values() if kind.facts.command}
_FILLED = {"SERIAL": "S-a", "WHY": "because", "…": "because"}


def commands(text: str) -> list[str]:
    """The command lines that a text prints, as a person reads them; those that only show something are left out."""
    found = (line.rstrip(" .:") for line in _COMMAND.findall(text))
    return [
        line for line in found if line.split()[1] in _NOUNS and (line.split()[1] != "node" or line.split()[2] in VERBS)
    ]


def words_of(line: str, filled: Mapping[str, str] = _FILLED) -> list[str]:
    """The words of a printed command line after `hostler`, each placeholder filled."""
    return [filled.get(word, word) for word in shlex.split(line)[1:]]


class Terminal:
    """A person's terminal: what they type goes through the real CLI to the real loop, and what is printed is kept."""

    def __init__(self, drive: Machines, api: FakeApi, capsys: Any) -> None:
        self.drive, self.printed, self._capsys, self._asked_for = drive, "", capsys, 0
        api.does("POST /v1/intents", self._asked)

    def _asked(self, asked: Asked) -> web.Response:
        body, drive = asked.body, self.drive
        act = act_made(kind_named(verb_in(body["act"])), body["act"])
        self._asked_for += 1
        named = (f"terminal{self._asked_for}", act, body["target"], "ann", body["reason"], drive.now)
        intent = Intent(*named, dry_run=body.get("dry_run", False))
        reply: Reply = drive.step(IntentAsked(self._asked_for, intent)).replies[-1]
        view = {"granted": reply.granted, "text": reply.text, "detail": reply.detail}
        if reply.granted:
            return web.json_response(view)
        return web.json_response({"error": "refused", "detail": reply.text, "instead": ""}, status=409)

    def type(self, line: str) -> bool:
        """Type the line, its placeholders filled; whether it was granted. A line that is no command fails the test."""
        words = words_of(line)
        words += [] if "--reason" in words else ["--reason", "because"]
        code = hostler(*words)
        out, err = self._capsys.readouterr()
        self.printed = out + err
        assert code in (ExitCode.ok, ExitCode.refused), f"{line} is no command: {self.printed}"
        return code is ExitCode.ok

    def obey(self, line: str) -> None:
        """Type a line that is printed at this moment, and have it granted."""
        assert line in self.shown(), f"nobody prints {line!r}:\n{self.shown()}"
        assert self.type(line), f"{line}: {self.printed}"

    def shown(self) -> str:
        """Texts that tell a person what to do about the node: the last answer, what it waits for, its tickets."""
        node = self.drive.node("a")
        blockers = node.waiting.blockers if node.waiting is not None else ()
        waits = [f"{one.text} — {one.ends_when}" for one in blockers]
        tickets = [f"{t.id}: {t.summary} — {t.action}" for t in self.drive.fleet.tickets_about("a")]
        return "\n".join((self.printed, *waits, *tickets)).replace('"…"', "…")

    def walk_to_production(self, rounds: int = 12) -> list[str]:
        """Type what is printed, first things first, until the node serves; the lines that were typed."""
        typed: list[str] = []
        answers: list[str] = []
        for _ in range(rounds):
            self.drive.wait(hours=6)
            node = self.drive.node("a")
            served = node.assignment is not None or self.drive.kind is Kind.dead  # a dead BMC bars no phase, but a pool
            if node.phase is Phase.production and served and not node.cordons:
                return typed
            fresh = [line for line in commands(self.shown()) if line not in typed]
            if not fresh:
                self.drive.wait(days=2)
                continue
            typed.append(fresh[0])
            self.type(fresh[0])
            answers.append(f"{fresh[0]} => {self.printed.strip()}")
        told = self.drive.transcript("a")[-6000:]
        raise AssertionError(f"{self.drive.node('a').phase} after {answers}:\n{self.shown()}\n{told}")


@contextmanager
def a_terminal(drive: Machines, monkeypatch: Any, tmp_path: Any, capsys: Any) -> Iterator[Terminal]:
    monkeypatch.setenv("HOSTLER_CONFIG", str(tmp_path / "contexts.json"))
    monkeypatch.delenv("HOSTLER_TOKEN", raising=False)
    with serving() as api:
        monkeypatch.setenv("HOSTLER_SERVER", api.url)
        yield Terminal(drive, api, capsys)
