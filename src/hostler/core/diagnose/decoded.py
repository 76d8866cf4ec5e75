"""Content of one line of kernel log, before it is judged."""

from msgspec import Struct

from hostler.core.state.model import Scalar


class Victim(Struct, frozen=True):
    """A process that the kernel killed; `pid` is None where the line does not say."""

    process: str
    pid: int | None = None


Fact = Scalar | tuple[str, ...] | tuple[Victim, ...] | dict[str, tuple[int, ...]]


class Decoded(Struct, frozen=True):
    """One fault report found in a kernel log.

    `condition` is a row of CONDITIONS. `event` names what happened where no code does. `action`, `severity` and
    `category` are the vendor catalogue's words. `pci` is domain:bus:device in lower case, "" where the line gives
    none. `known` is False for a code that no catalogue lists. `count` is how often a logger says the line came.
    `ambiguous` says why the line alone proves less than it seems to, "" where it is plain. `line` is the evidence,
    cut to a bounded length. `facts` are what else the line says.
    """

    kind: str
    condition: str
    text: str
    action: str
    code: int | None = None
    known: bool = True
    pci: str = ""
    severity: str = ""
    category: str = ""
    line: str = ""
    facts: dict[str, Fact] = {}
    event: str = ""
    count: int = 1
    ambiguous: str = ""
