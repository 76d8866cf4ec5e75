"""Seals of the audit log's chains: how far each had come, and its digest there."""

from typing import Literal

from msgspec import Struct

Chain = Literal["acts", "refusals"]
"""Chains by name: of what was done, and of what was refused or only tried."""


class Seal(Struct, frozen=True):
    """A chain of the audit log up to its entry `number`, whose digest (hex) it ends with."""

    chain: Chain
    number: int
    digest: str
