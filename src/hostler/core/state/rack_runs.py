"""A rack as one: its bring-up with recorded steps, what is under way on its assets, and its certificate."""

from datetime import datetime

from msgspec import Struct

from hostler.core.state.assets import AssetKind
from hostler.core.state.model import Operation, Waiting
from hostler.core.state.operations import AnyAct

WRITES_MOST = 1_024
"""Acts on assets that one step of a bring-up may consist of."""
GIVEN_UP_KEPT = 8
RACK_FAILED = "rack_bring_up"
"""The kind of ticket that a bring-up which failed leaves."""


class RackStep(Struct, frozen=True):
    """One step of a rack's bring-up: what has to stand, or is written, before the next.

    `stage` has to stand (`rack_match.STAGES`) within the deadline; `versions`: firmware counts in it, the step before a
    write asks for all but that. `writes`: the firmware of assets of this kind is written. `ends_when` is told where the
    step waits.
    """

    name: str
    deadline_s: float
    stage: str = ""
    versions: bool = True
    writes: AssetKind | None = None
    ends_when: str = ""


class AssetAct(Struct, frozen=True):
    """One act on one asset, frozen when its step began."""

    asset: str
    act: AnyAct
    deadline_s: float


class RackRun(Struct, frozen=True):
    """A rack's bring-up. `index` counts `steps`; `acts` are those of the step, None before they were laid down.

    `acted` counts the acts that are done. `since` is when the step began: a wait of it ends with its deadline. `sku`
    is the model whose manifest holds, `bundle` its set of versions when the bring-up began.
    """

    id: str
    rack: str
    sku: str
    bundle: str
    steps: tuple[RackStep, ...]
    person: str
    reason: str
    began: datetime
    since: datetime
    index: int = 0
    acts: tuple[AssetAct, ...] | None = None
    acted: int = 0
    waiting: Waiting | None = None


class RackEnd(Struct, frozen=True):
    """How the last bring-up ended: done, failed or called_off, at which step and why; for which SKU's rack."""

    run: str
    at: datetime
    result: str
    step: str
    why: str = ""
    sku: str = ""


class RackEvidence(Struct, frozen=True):
    """One asset or node of a certified rack: its serial number, and the versions that it ran."""

    name: str
    kind: str
    serial: str
    firmware: tuple[tuple[str, str], ...] = ()


class RackCertificate(Struct, frozen=True):
    """Proof that a rack was whole: who said so and when, for which bundle, by what evidence.

    `digest` is the SHA-256 of all of it. `void_since` and `void_why`: since when it holds no more.
    """

    rack: str
    sku: str
    bundle: str
    person: str
    at: datetime
    evidence: tuple[RackEvidence, ...]
    digest: str
    void_since: datetime | None = None
    void_why: str = ""

    @property
    def holds(self) -> bool:
        """Whether it speaks of the rack as it is."""
        return self.void_since is None


class Rack(Struct, frozen=True):
    """A rack as one, as far as it is known. `operations` are under way on its assets, `settling` may land late."""

    name: str
    run: RackRun | None = None
    ended: RackEnd | None = None
    certificate: RackCertificate | None = None
    operations: tuple[Operation, ...] = ()
    settling: tuple[Operation, ...] = ()
    given_up: tuple[str, ...] = ()
