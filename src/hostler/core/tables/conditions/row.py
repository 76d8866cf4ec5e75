"""A row of the table of conditions: all that is known of one, but for the response, which is the operator's choice."""

from typing import Literal

from msgspec import Struct

from hostler.core.state.cases import DUE_DAY
from hostler.core.state.model import Severity

Clears = Literal["remedy", "observation", "operator", "age"]

TEN_MINUTES_S, HALF_HOUR_S, HOUR_S, DAY_S = 600.0, 1_800.0, 3_600.0, 86_400.0
WEEK_S, MONTH_S = 7 * DAY_S, 30 * DAY_S

GPU_POLL_S, DCGM_POLL_S, HOST_POLL_S, PORT_POLL_S, BMC_LOOK_S = 10.0, 30.0, 30.0, 10.0, 10.0
CERTIFICATE_LOOK_S = 3600.0
PORT_DOWN_LOOKS, BMC_MISSED_LOOKS, PLUGIN_RUNS = 9, 3, 2
"""Ports train again within a minute and a half; a BMC misses three looks in a row; a plug-in says it twice."""
NVML_ANSWERS_LOOKS, UNREADABLE_LOOKS = 2, 3


class Seen(Struct, frozen=True):
    """A way of seeing a condition: what it needs before the condition is raised, and before it is over.

    `raise_looks` and `clear_looks` in a row must agree, `every_s` apart (0: whenever it is told). `clear_looks` None:
    this way never ends it.
    """

    by: str
    raise_looks: int = 1
    clear_looks: int | None = None
    every_s: float = 0.0


LOGGED = Seen("a line of the kernel log")
INVENTORIED = Seen("an inventory", 1, 1)
GPU_GATE = ("nvml", "pci", "kernel_log")
"""Sources for a GPU: itself, PCI, and no line of the kernel about it since."""


class Recurrence(Struct, frozen=True):
    """A window: `count` of them on one `subject` within `window_s` raise `result` there ("": the subject's suspicion).

    `distinct`: only occasions with another value of that fact count, and none whose value shows on another subject of
    the node too. `codes`: of these codes alone. `each`: every report counts, as long as they are `apart_s` apart; else
    only what was raised anew. `lines` False: a line of the kernel's log is no occasion, for it tells of one error and
    says nothing of their rate.
    """

    subject: Literal["node", "gpu", "part"]
    count: int
    window_s: float
    result: str = ""
    each: bool = False
    apart_s: float = 600.0
    lines: bool = True
    distinct: Literal["", "job", "image", "tenant", "process"] = ""
    codes: frozenset[int] = frozenset()


PROGRAM_FAULTS = frozenset({13, 31})


def programs(distinct: Literal["job", "image", "tenant", "process"], count: int) -> Recurrence:
    """The window over programs' faults of one GPU under different jobs, images, tenants or names."""
    return Recurrence("gpu", count, DAY_S, each=True, distinct=distinct, codes=PROGRAM_FAULTS)


class HandWork(Struct, frozen=True):
    """Work of a person on a condition that no remedy ends: what to bring, where to work, what proves it done.

    `due` and `owner` as in `cases.Ticket`. `after_s`: a ticket is opened once the condition has stood for so long.
    `proof_s`: whoever could see that it is over has looked by then. `symptom_of`: conditions of the node whose own
    ticket ends this one too. `last`: it has a ticket only where nothing else asks for anybody at the node. `shared`:
    one ticket for all that shows it in the cell, of one SKU and part, or of one part's name ("": for each part).
    `early`: nobody has to go to the machine for it, so that it is asked for before the node is onboard too. `command`
    goes on, `{node}` stands for the node's id.
    """

    bring: str
    where: str
    proof: str
    due: str = DUE_DAY
    owner: Literal["technician", "operator"] = "technician"
    after_s: float = 0.0
    proof_s: float = HALF_HOUR_S
    symptom_of: tuple[str, ...] = ()
    last: bool = False
    shared: Literal["", "sku", "part", "cell"] = ""
    early: bool = False
    command: str = ""


class ConditionKind(Struct, frozen=True):
    """One row. `clears` as in `model.Condition`; `expires_s` is set exactly where it clears by age.

    `meaning` is one sentence for people, `investigate` where to look first. `one_per` says whether several
    parts of one node can have it side by side. `unknown_after_s`: when whoever could confirm or revoke it has been
    silent for so long, it is unknown whether it still stands (`staleness`). `source`: an observer of the node says so;
    or Hostler itself does, or a person, neither of whom falls silent while anything is decided. `returned`: it meets
    the vendor's criteria for a return by itself, so examination sends the node to RMA whatever its checks say.
    `seen` are the ways of seeing it beside the aspects and sensors that their collectors' tables name, `margin` the
    hysteresis between raised and over, `worse` what makes it graver, `recurs` what it means when it comes back. `gate`:
    the readers that must each see it gone behind a remedy; None: none where its observer still tells, else nobody can.
    `silence`: it tells that somebody is silent, and says nothing of the machine's parts; `names_silent`: who is silent
    by it is not asked about it. `restarting`: a phase that powers its node off and on shows it by itself.
    `keeps_dark`: as long as it stands, or nobody knows whether it does, the node is given no power.
    `hands`: what a person does about it where the policy has no remedy for it; None: nobody need come.
    """

    type: str
    severity: Severity
    clears: Clears
    meaning: str
    investigate: str
    one_per: Literal["part", "node"] = "part"
    expires_s: float | None = None
    unknown_after_s: float = HOUR_S
    source: Literal["observer", "hostler", "person"] = "observer"
    returned: bool = False
    seen: tuple[Seen, ...] = ()
    margin: str = ""
    worse: str = ""
    recurs: tuple[Recurrence, ...] = ()
    gate: tuple[str, ...] | None = None
    silence: bool = False
    names_silent: bool = False
    restarting: bool = False
    keeps_dark: bool = False
    hands: HandWork | None = None
