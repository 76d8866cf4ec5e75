"""From observation to findings: pure decoding and judging of what was seen on or about a node."""

from msgspec import Struct

from hostler.core.state.model import Facts, Severity


class Finding(Struct, frozen=True):
    """Word of one observation about one condition type of one part.

    `standing` False means the observation shows that the condition is over. `part` is a serial, a slot, a PCI
    address or a check, "" for the node as a whole. `text` is one sentence for people. `drill`: the drill that it is of.
    """

    type: str
    severity: Severity
    text: str
    part: str = ""
    standing: bool = True
    facts: Facts = {}
    drill: str = ""
