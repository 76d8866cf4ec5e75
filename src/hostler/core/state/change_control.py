"""Limits on what one word may disturb: a second person's approval, and rollouts by slices. Values only."""

from datetime import datetime

from msgspec import Struct

from hostler.core.state.configuration import Configuration
from hostler.core.state.intent import Intent


class Approval(Struct, frozen=True):
    """An intent that waits for a second person's yes.

    `nodes` are those it would disturb (the first `NODES_LISTED`), `pools` how many of each pool ("" for none): what
    is granted later may pass none of these counts. A configuration that is to be activated comes along whole.
    """

    id: str
    intent: Intent
    asked: datetime
    expires: datetime
    why: str
    nodes: tuple[str, ...] = ()
    pools: tuple[tuple[str, int], ...] = ()
    gpus: int = 0
    configuration: Configuration | None = None
    documents: dict[str, str] = {}

    @property
    def count(self) -> int:
        """How many nodes it would disturb."""
        return sum(number for _, number in self.pools)


NODES_LISTED = 4096
APPROVALS_MAX = 64
"""Intents that may wait for a second person at once."""


class Slice(Struct, frozen=True):
    """The nodes that a rollout reaches in one step: some of a pool by name, or a whole pool ("" is no pool)."""

    pool: str
    size: int
    nodes: tuple[str, ...] = ()


class SliceError(Struct, frozen=True):
    """Harm that a new configuration did to a node and the one before would not have done.

    `kind`: failed (its remedy failed), worsened (a graver condition came, or the same came back), unexpected (it was
    disturbed and nobody had foreseen that), customer (running work was ended), wrong_removal (found healthy); ahead:
    it is not reached yet, and would be disturbed though nobody had foreseen that.
    """

    node: str
    kind: str
    text: str
    at: datetime


class Rollout(Struct, frozen=True):
    """A configuration that is put in force slice by slice; `state` is running, stopped or completed.

    Slices, soak time and threshold are frozen at the start. `index` is the slice that is watched, from `since` until
    `until` at least; `expected` are its nodes that the computed impact said would be disturbed, `removed` those that
    left their pool under it. `foreseen` is the impact computed for the whole cell at the start, `ahead` the nodes not
    reached yet that it would have disturbed beyond that. The configuration itself is kept while the rollout runs.
    """

    id: str
    sha256: str
    before: str
    person: str
    reason: str
    started: datetime
    slices: tuple[Slice, ...]
    soak_s: float
    limit_s: float
    error_percent: float
    errors_most: int
    since: datetime
    until: datetime
    approved_by: str = ""
    configuration: Configuration | None = None
    documents: dict[str, str] = {}
    index: int = 0
    expected: tuple[str, ...] = ()
    errors: tuple[SliceError, ...] = ()
    removed: tuple[str, ...] = ()
    foreseen: tuple[str, ...] = ()
    ahead: tuple[str, ...] = ()
    ahead_most: int = 0
    state: str = "running"
    ended: datetime | None = None
    ended_by: str = ""
    why: str = ""

    @property
    def current(self) -> Slice:
        """The slice that is watched."""
        return self.slices[self.index]

    @property
    def tolerated(self) -> int:
        """Errors that the current slice may show: a share of its nodes, one at least, `errors_most` at most."""
        return min(max(1, int(self.current.size * self.error_percent / 100)), self.errors_most)

    def reaches(self, node: str, pool: str) -> bool:
        """Whether the node, which serves this pool, is in a slice that the rollout has come to."""
        return any(
            node in slice_.nodes if slice_.nodes else pool == slice_.pool for slice_ in self.slices[: self.index + 1]
        )

    def reaches_whole(self, pool: str) -> bool:
        """Whether the whole pool is in force under the new configuration, its budget and target with it."""
        return any(slice_.pool == pool and not slice_.nodes for slice_ in self.slices[: self.index + 1])


ROLLOUTS_KEPT = 8
"""Ended rollouts that stay in memory; all are in the journal."""
ERRORS_KEPT = 64
AHEAD_MOST = 1_000
"""More nodes than this are never let be disturbed ahead of a rollout, however large the cell."""
