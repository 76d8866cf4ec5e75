"""A machine's measured boot beside what its SKU expects: registers (PCRs) 0 to 7 of its TPM. Pure."""

from hostler.core.state.configuration import Sku


def pcr_mismatch(sku: Sku | None, quoted: tuple[str, ...]) -> str:
    """Why the machine may not enrol by its SKU's `tpm_pcrs`, "" where it may, or the SKU names none."""
    if sku is None or not sku.tpm_pcrs:
        return ""
    if not quoted:
        return f"its agent sends no quote of a TPM, and SKU {sku.name} names tpm_pcrs"
    for number, good in sorted(sku.tpm_pcrs.items()):
        found = quoted[int(number)]
        if found not in good:
            told = f"its TPM quotes PCR {number} as {found}, SKU {sku.name} expects {' or '.join(good)}"
            return f"{told}; its firmware, settings or boot loader changed: add the value to the SKU, or restore them"[
                :500
            ]
    return ""
