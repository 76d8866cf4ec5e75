"""One sentence for each event of a golden."""

from typing import assert_never

from hostler.core.state import events as e
from hostler.core.state.counting import counted
from hostler.core.state.goldens import WITNESSES_LEAST, Culprit, Golden

SHOWN_CHARS = 12


def of_golden(event: e.GoldenEvent) -> str:
    """The event in one line."""
    golden = event.golden
    match event:
        case e.BitsTold(node=node):
            return f"{golden.check}: {node} gave {_bits(golden, node)} {_known(golden)}"
        case e.GoldenLearned(nearest=nearest):
            peers = f"{', '.join(golden.peers)} agree on {golden.digest[:SHOWN_CHARS]} ({golden.named()})"
            return "; ".join(filter(None, (f"golden {golden.id} of {golden.check} learned: {peers}", nearest)))
        case e.BitsDisputed(node=node, part=part):
            asked = " or ".join(golden.peers[:4])
            return (
                f"{golden.check} on {part} of {node} differs from golden {golden.id} of "
                f"{counted(len(golden.peers), 'peer')}: a witness is wanted, {asked}"
            )
        case e.WitnessHeard(node=node, part=part, witness=witness):
            return f"{witness} is a witness about {part} of {node}: it gave {_witnessed(event)}"
        case e.BitsJudged(node=node, part=part, culprit=culprit, why=why):
            return f"{_CONVICTS[culprit]} ({golden.check} on {part} of {node}): {why}"
        case e.GoldenRetired(person=person, reason=reason):
            return f"golden {golden.id} of {golden.check} retired by {person}: {reason}"
        case _:
            assert_never(event)


_CONVICTS = {
    Culprit.node: "the node is to blame",
    Culprit.stack: "the stack is to blame, and no node",
    Culprit.golden: "the golden is to blame, and no node",
    Culprit.nobody: "the difference is over",
}


def _bits(golden: Golden, node: str) -> str:
    return next((vote.digest[:SHOWN_CHARS] for vote in golden.votes if vote.node == node), "bits")


def _known(golden: Golden) -> str:
    if golden.digest:
        return f"too, as {counted(len(golden.peers) - 1, 'peer')} did"
    return f"on a stack without a golden ({counted(len(golden.votes), 'node')} of {WITNESSES_LEAST})"


def _witnessed(event: e.WitnessHeard) -> str:
    golden = event.golden
    dispute = next((one for one in golden.disputes if (one.node, one.part) == (event.node, event.part)), None)
    if dispute is None or not dispute.witnesses:
        return "bits"
    digest = dispute.witnesses[-1].digest
    if digest == golden.digest:
        return "the golden's bits"
    return "the node's bits" if digest == dispute.digest else f"bits of its own, {digest[:SHOWN_CHARS]}"
