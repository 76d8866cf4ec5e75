"""Odds that a node is bad, by tests of two or more: what each answer is worth, given how often they answer wrongly.

A test fails where any of its nodes is bad. It also fails wrongly and passes wrongly, so one answer decides nothing,
and an answer beside a partner that is probably bad is worth little.
"""

from collections.abc import Iterable
from math import exp, log, prod

from msgspec import Struct


class PairTestRates(Struct, frozen=True):
    """Rates at which tests of two answer wrongly and nodes are bad, and the odds at which a node is decided.

    Our judgement: one node of a hundred is bad before any test, one test of a hundred fails wrongly, and one of ten
    passes wrongly. `sound_odds`: at most, so that two passes are needed, and three after a failure. `blamed_odds`: at
    least, so that a node fails three times or more beside nodes that have passed.
    """

    wrong_fail: float = 0.01
    miss: float = 0.10
    bad_share: float = 0.01
    sound_odds: float = 7e-4
    blamed_odds: float = 1e4

    def __post_init__(self) -> None:
        """Refuse rates by which nothing could be told. Raises ValueError."""
        for name in ("wrong_fail", "miss", "bad_share"):
            if not 0 < getattr(self, name) < 0.5:
                raise ValueError(f"{name} must be above 0 and below 0.5, not {getattr(self, name):g}")
        if not 0 < self.sound_odds < self.bad_share < 1 < self.blamed_odds:
            raise ValueError("sound_odds must be above 0 and below bad_share, and blamed_odds above 1")

    @property
    def log_prior(self) -> float:
        """Log odds of a node that met nobody."""
        return log(self.bad_share / (1 - self.bad_share))

    def after(self, own: float, beside: Iterable[float], *, passed: bool) -> float:
        """Log odds of a node after a test beside others whose log odds before it were `beside`.

        Bayes' rule, with the partners' states summed out. What later becomes known of them is not carried back.
        """
        partner_bad = 1 - prod(1 / (1 + exp(odds)) for odds in beside)
        if_bad, if_sound = (self.miss, 1 - self.wrong_fail) if passed else (1 - self.miss, self.wrong_fail)
        return own + log(if_bad / (partner_bad * if_bad + (1 - partner_bad) * if_sound))
