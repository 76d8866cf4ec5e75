"""Answer of a backtest, as values: what another policy would have done otherwise, at what cost, and what is unknown."""

from datetime import datetime

from msgspec import Struct


class Typical(Struct, frozen=True):
    """How long a remedy keeps a place out, in seconds: median, and from the 10th to the 90th of a hundred.

    `stays` were recorded; of fewer than three the bounds are nothing and all the recipe's deadlines together, or the
    longest of them.
    """

    remedy: str
    stays: int
    median_s: float
    least_s: float
    most_s: float


class Fidelity(Struct):
    """How well the recorded policy explains what was recorded.

    `explained` of `remedies` recorded plans are what it decides in the replayed state. `findings` were made again from
    `observations`; `missing` and `surplus` ones are what today's diagnosis says less and more than was recorded.
    """

    records: int = 0
    observations: int = 0
    remedies: int = 0
    explained: int = 0
    findings: int = 0
    missing: int = 0
    surplus: int = 0
    unexplained: list[str] = []


class Estimate(Struct, frozen=True):
    """A figure on trial: the best guess between its bounds."""

    least: float
    likely: float
    most: float


class DifferenceRow(Struct, frozen=True):
    """One difference. `recorded` and `trial` say what each policy decided; hours are of the stay that followed."""

    node: str
    pool: str
    at: datetime
    seq: int
    kind: str
    recorded: str
    trial: str
    rule: str
    diverged_at: datetime
    counterfactual: bool
    recorded_hours: float
    trial_hours: Estimate
    ended: bool


class Backtest(Struct, frozen=True):
    """The whole answer. `not_judged` are settings that differ and that no replay can judge."""

    since: datetime
    until: datetime
    config: str
    records: int
    observations: int
    records_per_s: float
    observed_from: datetime | None
    nodes: int
    differences: dict[str, int]
    remedies: dict[str, int]
    disruptions_recorded: int
    disruptions_trial: Estimate
    service_recorded: float
    service_trial: Estimate
    fidelity: Fidelity
    typical: tuple[Typical, ...]
    not_judged: tuple[str, ...]
    method: str
    rows: tuple[DifferenceRow, ...]
