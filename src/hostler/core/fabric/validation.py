"""One validation of a fabric, and how the open cases go on with it."""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.fabric.binding import bind
from hostler.core.fabric.design import Design
from hostler.core.fabric.discovery import Discovery
from hostler.core.fabric.findings import FabricFinding, Kind
from hostler.core.fabric.matching import match

LEAST_SHARE = 0.8
"""Where less of the design answers, it is the look that failed and not the fabric: nothing is concluded from it."""

FEW = 2
"""So many dark devices are believed in a fabric of any size: of six switches one is more than a fifth already."""

CLEAN_RUNS = 2
"""After so many whole validations in a row without it a case is closed: links come and go while people work."""


class ValidationVerdict(StrEnum):
    """What a validation came to. Only the first two conclude anything."""

    as_designed = "as_designed"
    differs = "differs"
    partial = "partial"
    shrunken = "shrunken"


class Validation(Struct, frozen=True):
    """`designed` and `found` count cables and links. `why` says what kept it from concluding anything."""

    verdict: ValidationVerdict
    designed: int
    found: int
    findings: tuple[FabricFinding, ...] = ()
    why: str = ""
    renamed: tuple[tuple[str, str], ...] = ()
    ambiguous: tuple[str, ...] = ()


class Case(Struct, frozen=True):
    """A finding that is open. `clean`: whole validations in a row that did not see it any more."""

    finding: FabricFinding
    clean: int = 0


class Followed(Struct, frozen=True):
    """The cases after a validation, and what changed: keys that were opened, and that were closed as repaired."""

    cases: tuple[Case, ...]
    opened: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()


def validate(design: Design, discovery: Discovery) -> Validation:
    """What was found against what was designed. A partial look concludes nothing."""
    count, links = len(design.cables), len(discovery.links)
    if discovery.partial:
        return Validation(ValidationVerdict.partial, count, links, why=discovery.partial)
    bound = bind(design, discovery)
    findings = match(design, bound)
    if why := _shrunken(design, findings):
        return Validation(ValidationVerdict.shrunken, count, links, why=why)
    verdict = ValidationVerdict.differs if findings else ValidationVerdict.as_designed
    renamed = tuple(sorted(bound.renamed.items()))
    return Validation(verdict, count, links, findings, renamed=renamed, ambiguous=bound.ambiguous)


def _shrunken(design: Design, findings: tuple[FabricFinding, ...]) -> str:
    """Why the fabric is not believed to have lost so much; "" where it is."""
    dark = sum(finding.kind is Kind.dark_device for finding in findings)
    if dark > FEW and dark > (1 - LEAST_SHARE) * len(design.devices):
        return (
            f"{dark} of {len(design.devices)} devices did not answer: the discovery saw another fabric, or part of it"
        )
    missing = sum(finding.kind is Kind.missing for finding in findings)
    if missing > FEW and missing > (1 - LEAST_SHARE) * len(design.cables):
        return f"{missing} of {len(design.cables)} cables have no link: the discovery saw part of the fabric"
    return ""


def follow(cases: tuple[Case, ...], validation: Validation) -> Followed:
    """Open cases go on, new ones are opened, and those not seen in so many clean runs are closed.

    A finding is an open case's where key or ports are: half a repair leaves less of the same, not something new.
    """
    if validation.verdict in (ValidationVerdict.partial, ValidationVerdict.shrunken):
        return Followed(cases)
    left = {finding.key: finding for finding in validation.findings}
    kept, closed = [], []
    for case in cases:
        if (same := _same(case.finding, left)) is not None:
            kept.append(Case(replace(left.pop(same), key=case.finding.key)))
        elif case.clean + 1 >= CLEAN_RUNS:
            closed.append(case.finding.key)
        else:
            kept.append(replace(case, clean=case.clean + 1))
    opened = tuple(sorted(left))
    return Followed((*kept, *(Case(left[key]) for key in opened)), opened, tuple(closed))


def _same(old: FabricFinding, fresh: dict[str, FabricFinding]) -> str | None:
    if old.key in fresh:
        return old.key
    ports = frozenset(old.ports)
    return min((key for key, finding in fresh.items() if ports.intersection(finding.ports)), default=None)
