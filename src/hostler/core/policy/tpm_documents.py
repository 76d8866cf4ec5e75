"""Checks what a SKU says of its TPM's registers: numbers and values that no quote could ever show are refused."""

import re
from collections.abc import Iterator

from hostler.core.state.boot import PCRS
from hostler.core.state.configuration import Sku
from hostler.core.state.input_problems import WrongEntry

_VALUE = re.compile(r"[0-9a-f]{64}")


def tpm_problems(sku: Sku) -> Iterator[WrongEntry]:
    """Problems of the SKU's `tpm_pcrs`."""
    place = ("skus", sku.name, "tpm_pcrs")
    for number, values in sku.tpm_pcrs.items():
        if number not in {str(n) for n in range(PCRS)}:
            yield WrongEntry(f"{number[:20]!r} is no register of a measured boot", f'write "0" to "{PCRS - 1}"', place)
        if not values or not all(_VALUE.fullmatch(value) for value in values):
            instead = "write values as `hostler node get` shows them (boot.pcrs): 64 hexadecimal digits in lower case"
            yield WrongEntry(f"PCR {number[:20]} names no value of SHA-256", instead, place)
