"""Nouns of a node's explanation: chains from evidence to outcome, and what happened beside them."""

from datetime import datetime

from msgspec import Struct

from hostler.core.report.burn_ins import BurnInStanding
from hostler.core.report.next_actor import ActsNext
from hostler.core.state.certificates import KeptCertificate
from hostler.core.state.model import ActFailure, CheckResult, Evidence, Phase, Waiting


class Link(Struct, frozen=True):
    """A condition while it stood. `cause` is the observation, intent or other input that raised it.

    `shadows`: what a rule in shadow would have done about it, as sentences. `unknown`: since when nobody can say
    whether it still stands.
    """

    id: str
    type: str
    severity: int
    part: str
    since: datetime
    count: int
    cause: str
    evidence: tuple[Evidence, ...]
    cleared: datetime | None = None
    cleared_by: str = ""
    why: str = ""
    shadows: tuple[str, ...] = ()
    unknown: datetime | None = None


class OperationStory(Struct, frozen=True):
    """An operation: what was asked, and how it ended. `result` "" while it is under way.

    `looked`: what a gate looked at, part by part, with what it found.
    """

    id: str
    kind: str
    started: datetime | None
    finished: datetime | None = None
    seconds: float | None = None
    result: str = ""
    detail: str = ""
    attempt: int = 1
    looked: tuple[str, ...] = ()


class Remedy(Struct, frozen=True):
    """The plan that answered: under which class, by which rule of which configuration, step by step.

    `unproven`: proofs that were not to be had on this node, each with why.
    """

    id: str
    name: str
    act_class: str = ""
    rule: str = ""
    config: str = ""
    steps: tuple[str, ...] = ()
    index: int = 0
    state: str = ""
    recorded: datetime | None = None
    approved_by: str = ""
    ended: datetime | None = None
    result: str = ""
    reason: str = ""
    unproven: tuple[str, ...] = ()


class PhaseMove(Struct, frozen=True):
    """A change of phase."""

    at: datetime
    before: Phase
    after: Phase
    reason: str


class WaitSpell(Struct, frozen=True):
    """A time in which something waited for the same reasons: since when, until when (None: it still does), for what.

    `by_turns`: the reasons came and went, now one of them, now another.
    """

    what: str
    since: datetime
    until: datetime | None
    seconds: float | None
    kinds: tuple[str, ...]
    reasons: tuple[str, ...]
    by_turns: bool = False


class CausalChain(Struct, frozen=True):
    """One story: what was seen, what it meant, what was done, how it ended. `open` while it goes on.

    `waits` are those of the remedy, before it began and meanwhile, in their order.
    """

    at: datetime
    seq: int
    open: bool
    outcome: str
    conditions: tuple[Link, ...] = ()
    remedy: Remedy | None = None
    operations: tuple[OperationStory, ...] = ()
    moves: tuple[PhaseMove, ...] = ()
    waits: tuple[WaitSpell, ...] = ()


class Note(Struct, frozen=True):
    """Event that happened beside the chains (a boot, a hold, an assignment, a person's request)."""

    at: datetime
    seq: int
    text: str
    cause: str


class Explanation(Struct, frozen=True):
    """Why a node is where it is. `partial`: something began before the first record that was given; it is of `since`.

    `progress` is where a long check stands, as the node's agent told last; no record holds it. `burn_in` is the burn-in
    under way beside those of its SKU, by the journal, None where none is. `probation`: until when
    the node is watched after a repair, and what that means for it, "" where it is not. `checks` are the last
    verdicts, one of each profile. `left_out`: so many chains, notes and waits are known and not among these.
    `waits` are those that belong to no chain, the latest last. `failures`: what failed last, the newest first.
    `acts_next`: whose turn it is, None of a node that has left. `cannot`: remedies that cannot be
    carried out on the node, so that the next rung or a person takes their place, with why and what to do.
    """

    node: str
    phase: Phase | None
    phase_since: datetime | None
    waiting: Waiting | None
    chains: tuple[CausalChain, ...]
    notes: tuple[Note, ...]
    partial: bool = False
    since: datetime | None = None
    progress: str = ""
    probation: str = ""
    checks: tuple[CheckResult, ...] = ()
    certificates: tuple[KeptCertificate, ...] = ()
    burn_in: BurnInStanding | None = None
    acts_next: ActsNext | None = None
    waits: tuple[WaitSpell, ...] = ()
    failures: tuple[ActFailure, ...] = ()
    cannot: tuple[str, ...] = ()
    left_out: int = 0
