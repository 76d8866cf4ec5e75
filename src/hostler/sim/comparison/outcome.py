"""Outcome in sentences: where ours is not best, where these seeds tell no difference, and where it is."""

from collections.abc import Iterator

from hostler.sim.comparison.comparison_run import Mean, PeerResult, Trial

TITLES = {
    "goodput": "goodput %",
    "minutes_per_failure": "min/failure",
    "customer_disruptions": "live work ended",
    "wrong_removals": "healthy nodes taken",
    "human_touches": "human touches",
    "vendor_node_days": "node-days at the vendor",
    "hours_to_full": "hours until a place is filled",
    "failures": "failures met",
}
"""Figure → the head of its column."""
COMPARED = ("goodput", "customer_disruptions", "wrong_removals", "human_touches", "vendor_node_days", "hours_to_full")
STANDINGS = {"not best in": "worse", "not told apart by these seeds in": "equal", "better in": "better"}
MORE_IS_BETTER = ("goodput",)
BOUND = "oracle"
"""Bound of every policy: no policy can save more. It is no rival."""


def shown(figure: str, value: Mean, *, signed: bool = False) -> str:
    """The mean with its half width; goodput in percent."""
    factor = 100 if figure == "goodput" else 1
    digits = 1 if abs(value.mean * factor) >= 100 else 2
    mean = f"{value.mean * factor:{'+' if signed else ''}.{digits}f}"
    return mean if value.half is None else f"{mean} ± {value.half * factor:.{digits}f}"


def told(what: str, trial: Trial) -> Iterator[str]:
    """Markdown: for each table a list of figures, the lost ones first."""
    for rates, table in trial.tables.items():
        yield f"**In {what} ({rates})**, ours against each peer, by the paired difference and its interval:"
        yield ""
        for words, standing in STANDINGS.items():
            lines = list(_lines(table, standing))
            yield f"- *{words}* " + ("; ".join(lines) if lines else "nothing") + "."
        yield ""


def _lines(table: tuple[PeerResult, ...], standing: str) -> Iterator[str]:
    rivals = [line for line in table if line.against_ours and line.peer != BOUND]
    for figure in COMPARED:
        names = [line.peer for line in rivals if stands(figure, line.against_ours[figure]) == standing]
        if names:
            yield f"{TITLES[figure]} ({', '.join(names)})"


def stands(figure: str, difference: Mean) -> str:
    """How ours stands where a peer's figure less ours is this: better, equal or worse. One seed tells nothing."""
    if difference.half is None or abs(difference.mean) <= difference.half:
        return "equal"
    peers_is_more = difference.mean > 0
    return "worse" if peers_is_more is (figure in MORE_IS_BETTER) else "better"
