"""From a node's history to why: evidence → condition → rule → remedy → operations → outcome, latest chain first.

Pure, and content with part of a history: what began before its first record is shown from where it is known.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from hostler.core.report.explanation_chains import CausalChain, Explanation, OperationStory, Remedy, WaitSpell
from hostler.core.report.last_failures import failure_text
from hostler.core.report.sentences import ROWS, sentence
from hostler.core.report.story import NodeStory
from hostler.core.state import events as e
from hostler.core.state.durations import duration
from hostler.core.state.model import Blocker, Node

CHAINS_MAX = 50
NOTES_MAX = 50
WAITS_MAX = 50
WAITS_TOLD = 20
"""So many waits of a chain are told to people, the latest."""


def explain(records: Sequence[e.Record], node: Node | None) -> Explanation:
    """The explanation of one node from records about it, in any order. `node` None: it is retired or unknown."""
    story = NodeStory(sentence)
    for record in sorted(records, key=lambda r: r.seq):
        ROWS[type(record.event)].story(story, record, record.event)
    every, spells = story.chains(), story.waits()
    chains = sorted(_worth_telling(every), key=lambda c: (c.open, c.seq), reverse=True)
    beyond = (len(every) - len(chains), len(story.notes) - NOTES_MAX, len(spells) - WAITS_MAX)
    return Explanation(
        node=node.id if node else story.node,
        phase=node.phase if node else story.phase,
        phase_since=node.phase_since if node else None,
        waiting=node.waiting if node else None,
        chains=tuple(chains),
        notes=tuple(reversed(story.notes[-NOTES_MAX:])),
        partial=story.partial,
        checks=node.checks if node else (),
        certificates=node.certificates if node else (),
        waits=tuple(spells[-WAITS_MAX:]),
        left_out=sum(max(0, one) for one in beyond),
    )


def _worth_telling(chains: Sequence[CausalChain]) -> list[CausalChain]:
    """The chains that go on, then those with a remedy, then others: the latest CHAINS_MAX of them in this order.

    Conditions that came and went by themselves, however many, hide no remedy.
    """
    return sorted(chains, key=lambda c: (c.open, c.remedy is not None, c.seq), reverse=True)[:CHAINS_MAX]


def probation_of(node: Node, now: datetime) -> str:
    """Probation of the node in words, with what follows from it; "" where it is on none."""
    if node.probation_until is None or now >= node.probation_until:
        return ""
    spare = "" if node.assignment else ", and this spare is delivered after all without probation"
    return f"on probation until {_moment(node.probation_until)}: a remedy begins one rung higher{spare}"


def text(explanation: Explanation) -> str:
    """The explanation for people, plain lines, latest chain first."""
    lines = [f"{explanation.node} is in {explanation.phase or 'an unknown phase'}{_since(explanation.phase_since)}"]
    lines.extend(f"  failed     {failure_text(one)}" for one in explanation.failures)
    if explanation.waiting:
        lines.append(f"  {explanation.waiting.what} waits{_since(explanation.waiting.since)}:")
        lines.extend(line for blocker in explanation.waiting.blockers for line in _blocked(blocker))
    if explanation.acts_next:
        lines.append(f"  next       {explanation.acts_next.text}")
    lines.extend(f"  cannot     {told}" for told in explanation.cannot)
    if explanation.probation:
        lines.append(f"  {explanation.probation}")
    if explanation.progress:
        lines.append(f"  its agent says: {explanation.progress}")
    if explanation.burn_in:
        lines.append(f"  {explanation.burn_in.text}")
    for check in explanation.checks:
        detail = f": {check.detail}" if check.detail else ""
        lines.append(f"  checked    {check.profile} {check.verdict.value} at {_moment(check.at)}{detail}")
    for one in explanation.certificates[-1:]:
        whose = f", of {one.tenant}" if one.tenant else ""
        lines.append(f"  sanitised  {one.drives} drives at {_moment(one.at)}{whose}: certificate {one.digest[:12]}")
    for chain in explanation.chains:
        lines.extend(("", *_told(chain)))
    lines.extend(_past_waits(explanation.waits))
    lines.extend(_not_shown(explanation))
    return "\n".join(lines)


def _not_shown(explanation: Explanation) -> Iterator[str]:
    if explanation.partial:
        yield from ("", "Earlier records are not shown.")
    if explanation.left_out:
        told = f"{explanation.left_out:,} more chains, notes and waits are not shown"
        yield from ("", f"{told}: hostler node history {explanation.node} --limit 0 has the records.")


def _since(at: datetime | None) -> str:
    return f" since {_moment(at)}" if at else ""


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _blocked(blocker: Blocker) -> list[str]:
    return [f"    {blocker.text}", *(f"      → {way.sentence}" for way in blocker.ways)]


def _told(chain: CausalChain) -> list[str]:
    lines = [f"{_moment(chain.at)}  {chain.outcome}"]
    for link in chain.conditions:
        where = f" on {link.part}" if link.part else ""
        lines.append(f"  condition  {link.type}{where}, {link.count} time{'s' if link.count > 1 else ''}")
        lines.extend(f"    evidence {seen.at:%H:%M:%S} {seen.source}: {seen.text}" for seen in link.evidence)
        if link.cleared and chain.remedy:
            lines.append(f"    cleared  {link.cleared:%H:%M:%S} by {link.cleared_by}: {link.why}")
        if link.unknown:
            lines.append(f"    unknown since {_moment(link.unknown)}: its sources are silent")
        lines.extend(f"    {told}" for told in link.shadows)
    if chain.remedy:
        lines.extend(_remedy_told(chain.remedy))
    lines.extend(_waits_told(chain.waits))
    for act in chain.operations:
        lines.append(f"    {_act_told(act)}")
        lines.extend(f"      {look}" for look in act.looked)
    lines.extend(f"  phase      {move.before} → {move.after}: {move.reason}" for move in chain.moves)
    return lines


def _remedy_told(remedy: Remedy) -> list[str]:
    lines = []
    if remedy.rule:
        lines.append(f"  rule       {remedy.rule} (configuration {remedy.config[:12]})")
    how = f" ({remedy.act_class})" if remedy.act_class else ""
    lines.append(f"  remedy     {remedy.name}{how}: {' → '.join(remedy.steps)}")
    lines.extend(f"  unproven   {one}" for one in remedy.unproven)
    if remedy.approved_by:
        lines.append(f"  approved   by {remedy.approved_by}")
    return lines


def _waits_told(waits: Sequence[WaitSpell]) -> Iterator[str]:
    """Each wait with its reason and length, in their order; the first ones are left out where there are too many."""
    if len(waits) > WAITS_TOLD:
        yield f"  waited     {len(waits) - WAITS_TOLD} times before"
    for spell in waits[-WAITS_TOLD:]:
        took = f"for {duration(spell.seconds)}" if spell.seconds is not None else "and still waits"
        turns = "by turns for " if spell.by_turns else ""
        yield f"  waited     {spell.since:%H:%M:%S} {took}: {turns}{'; '.join(spell.reasons)}"


def _past_waits(waits: Sequence[WaitSpell]) -> Iterator[str]:
    """Waits that are over and belong to no remedy."""
    past = [spell for spell in waits if spell.until is not None]
    if past:
        yield from ("", "Other waits:")
    for spell in past[-WAITS_TOLD:]:
        took = duration(spell.seconds or 0)
        yield f"  {spell.what:<10} {spell.since:%H:%M:%S} for {took}: {'; '.join(spell.reasons)}"


def _act_told(act: OperationStory) -> str:
    began = f"{act.started:%H:%M:%S}" if act.started else "earlier "
    took = f" in {duration(act.seconds)}" if act.seconds is not None else ""
    detail = f": {act.detail}" if act.detail else ""
    return f"{began} {act.kind} {act.result.replace('_', ' ') or 'is under way'}{took}{detail}"
