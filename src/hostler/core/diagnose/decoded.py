"""What one line of kernel log says, before it is judged."""

from msgspec import Struct

from hostler.core.model import Scalar

Fact = Scalar | tuple[str, ...]


class Decoded(Struct, frozen=True):
    """One fault report found in a kernel log.

    `condition` is a row of CONDITIONS. `action`, `severity` and `category` are the vendor catalogue's words.
    `pci` is domain:bus:device in lower case, "" where the line gives none. `known` is False for a code that
    no catalogue lists. `line` is the evidence, cut to a bounded length. `facts` are what else the line says.
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
