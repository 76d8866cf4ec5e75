"""The part of the page that says which rules each peer has, whose they are, and what it gains or lacks here."""

from collections.abc import Iterator

from hostler.core.state.configuration import Rule
from hostler.sim.peers.condition_coverage import ANSWERED_BY, rules_of
from hostler.sim.peers.peer import Peer
from hostler.sim.peers.peer_table import OURS, PEERS, WATCH_ONLY


def told() -> Iterator[str]:
    """Markdown: who they are, and a table of faults by peers."""
    yield from _who()
    yield from _rules()


def _who() -> Iterator[str]:
    yield "## Who they are, and what they gain and lack here"
    yield ""
    yield (
        "All run under Hostler's controller in the same worlds. A peer has every rule that its real counterpart "
        "documents, and ours wherever it documents none."
    )
    yield ""
    for peer in PEERS.values():
        yield f"- **{peer.name}**: {peer.title}. {_where(peer)}.{_balance(peer)}"
    yield ""


def _where(peer: Peer) -> str:
    if peer is OURS:
        return "`src/hostler/core/policy/default_policy.yaml`"
    module = peer.attends.__module__.rpartition(".")[2]
    beside = "" if module == "peer" else f", and `{module}.py` beside it"
    return f"`src/hostler/sim/peers/{peer.policy}`{beside}"


def _balance(peer: Peer) -> str:
    gains = f" Gains here: {peer.gains}." if peer.gains else ""
    lacks = f" Lacks here: {peer.lacks}." if peer.lacks else ""
    return gains + lacks


def _rules() -> Iterator[str]:
    automatic = [peer for peer in PEERS.values() if peer.policy != WATCH_ONLY]
    tables = {peer.name: rules_of(peer.document()) for peer in automatic}
    yield "## Which rules each has"
    yield ""
    yield (
        "By kind of fault that the worlds draw. *Own*: the peer's counterpart documents it; *given*: a rule of ours "
        "that the peer gets as well. auto-repair and nobody act on all that is critical or that ours acts on. "
        "Kinds that no policy answers are left out: "
        f"{', '.join(kind for kind, names in ANSWERED_BY.items() if not names)}."
    )
    yield ""
    yield f"| fault | condition | {' | '.join(tables)} |"
    yield f"|---|---|{'---|' * len(tables)}"
    for kind, names in ANSWERED_BY.items():
        for name in names:
            cells = (_cell(name, peer, tables[peer.name]) for peer in automatic)
            yield f"| {kind} | `{name}` | {' | '.join(cells)} |"
    yield ""


def _cell(name: str, peer: Peer, rules: dict[str, Rule]) -> str:
    rule = rules[name]
    source = "" if peer is OURS else f" ({rule.note})"
    return f"{rule.remedy}, {rule.timing}{source}"
