"""Nouns of goldens: bits that checks give on one stack, who gave them, and which nodes differ.

A stack is everything that changes a result's bits: check and version, device, driver, libraries, threads, number
format, shapes. Its key is made here of what a node told, and of nothing that the node says about the key.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from hashlib import sha256

from msgspec import Struct

WITNESSES_LEAST = 3
"""Machines that must agree before their bits are a golden."""
VOTES_MOST = 16
"""Nodes of which a stack remembers what they gave."""
DISPUTES_MOST = 64
"""Parts that may differ from one golden at a time: where more do, those that are open decide it."""
STACKS_MOST = 10_000
STACKS_OF_A_NODE = 64
"""Stacks without a golden that one node may be known for; it cannot fill the cell's memory."""
ID_CHARS = 20


class Culprit(StrEnum):
    """Party that a mismatch convicts. `nobody`: the part gives the golden's bits again."""

    node = "node"
    stack = "stack"
    golden = "golden"
    nobody = "nobody"


class BitsVote(Struct, frozen=True):
    """Bits that a node gave, the same on all its parts. `machine` are names that no other machine has."""

    node: str
    digest: str
    machine: tuple[str, ...]
    at: datetime


class Dispute(Struct, frozen=True):
    """A part of a node whose bits differ from the golden. `culprit` "" while witnesses are wanted."""

    node: str
    part: str
    digest: str
    machine: tuple[str, ...]
    since: datetime
    witnesses: tuple[BitsVote, ...] = ()
    culprit: str = ""


class Golden(Struct, frozen=True):
    """Bits of a check on one stack. `digest` "": too few machines agree so far.

    `unstable`: node, witnesses and golden gave several results, so that nothing is compared until a person retires it.
    """

    id: str
    check: str
    version: int
    stack: tuple[tuple[str, str], ...]
    votes: tuple[BitsVote, ...] = ()
    digest: str = ""
    learned: datetime | None = None
    disputes: tuple[Dispute, ...] = ()
    unstable: str = ""

    @property
    def peers(self) -> tuple[str, ...]:
        """The nodes that gave the golden's bits."""
        return tuple(vote.node for vote in self.votes if vote.digest == self.digest) if self.digest else ()

    @property
    def wanted(self) -> tuple[str, ...]:
        """Peers of a golden of which somebody's difference is undecided: each is a witness."""
        return self.peers if any(not dispute.culprit for dispute in self.disputes) else ()

    def named(self) -> str:
        """The stack for people, without the check's own parameters."""
        words = (f"{name} {value}" for name, value in self.stack if value and not name.startswith("param "))
        return ", ".join(words)


def golden_id(check: str, version: int, stack: Mapping[str, str]) -> str:
    """The id of a stack: the head of the key by which `hostler-check` knows it too."""
    return sha256(json.dumps([check, version, sorted(stack.items())]).encode()).hexdigest()[:ID_CHARS]
