"""All verbs: the table from a verb as people write it to its struct."""

from hostler.core.state.verbs import (
    activation,
    approvals,
    bmc_certificates,
    bmc_logins,
    call_off,
    drills,
    fabrics,
    goldens,
    holds,
    lights,
    machine_work,
    maintenance,
    modes,
    nodes,
    onboarding,
    proposals,
    racks,
    recovery,
    remediators,
    remedies,
    rma_cases,
    tickets,
)
from hostler.core.state.verbs.facts import Verb, name_of

_NOUNS = (
    activation,
    approvals,
    bmc_certificates,
    bmc_logins,
    drills,
    call_off,
    machine_work,
    fabrics,
    goldens,
    holds,
    lights,
    maintenance,
    modes,
    nodes,
    onboarding,
    proposals,
    racks,
    recovery,
    remediators,
    remedies,
    rma_cases,
    tickets,
)

VERBS: dict[str, type[Verb]] = {
    name_of(kind): kind
    for noun in _NOUNS
    for kind in vars(noun).values()
    if isinstance(kind, type) and issubclass(kind, Verb) and "facts" in vars(kind)
}
"""Every verb of every noun."""
