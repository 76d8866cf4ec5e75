"""One validation of a fabric: its findings, and how each designed cable was found."""

from msgspec import Struct

from hostler.core.fabric.binding import Bound, bind
from hostler.core.fabric.design import Design
from hostler.core.fabric.discovery import Discovery
from hostler.core.fabric.findings import FabricFinding, Kind
from hostler.core.fabric.links import designed_links
from hostler.core.fabric.matching import match
from hostler.core.state.fabrics import DesignedLink, FabricVerdict, LinkCondition

LEAST_SHARE = 0.8
"""Share of the design that answers at least: with less, the look has failed and not the fabric."""

LOST_MOST = 0.5
"""More than this share of all cables without a link is an island's view, however few dark devices explain it."""

FEW = 2
"""So many dark devices are believed in a fabric of any size: of six switches one is more than a fifth already."""


class Validation(Struct, frozen=True):
    """`designed` and `found` count cables and links. `why` says what kept it from concluding anything."""

    verdict: FabricVerdict
    designed: int
    found: int
    findings: tuple[FabricFinding, ...] = ()
    why: str = ""
    renamed: tuple[tuple[str, str], ...] = ()
    ambiguous: tuple[str, ...] = ()


class Compared(Struct, frozen=True):
    """A validation, and how each designed cable was found; no cable is told of where nothing is concluded."""

    validation: Validation
    links: tuple[DesignedLink, ...] = ()


def validate(design: Design, discovery: Discovery) -> Validation:
    """Compare the network with its design. A partial look concludes nothing."""
    return compare(design, discovery).validation


def compare(design: Design, discovery: Discovery) -> Compared:
    """The validation, with the condition of each designed cable."""
    count, links = len(design.cables), len(discovery.links)
    if discovery.partial:
        return Compared(Validation(FabricVerdict.partial, count, links, why=discovery.partial))
    bound = bind(design, discovery)
    if why := _knows_no_more(design, bound):
        return Compared(Validation(FabricVerdict.partial, count, links, why=why))
    findings = match(design, bound)
    conditions = designed_links(design, bound)
    if why := _shrunken(design, findings, discovery.off) or _lost(design, conditions, discovery.off):
        return Compared(Validation(FabricVerdict.shrunken, count, links, why=why))
    verdict = FabricVerdict.differs if findings else FabricVerdict.as_designed
    renamed = tuple(sorted(bound.renamed.items()))
    seen = Validation(verdict, count, links, findings, renamed=renamed, ambiguous=bound.ambiguous)
    return Compared(seen, conditions)


def _knows_no_more(design: Design, bound: Bound) -> str:
    """Why the rates are not believed: no link is told as fast as much of the design; "" where they are.

    Debian's ibsim and older diagnostics tell HDR of every faster link. A link that is slow stands beside others.
    """
    told = list(bound.rates.values())
    if not told:
        return ""
    fastest = max(told, key=lambda rate: rate.lane_gbps)
    rated = [cable for cable in design.cables if cable.rate is not None]
    beyond = sum(cable.rate.lane_gbps > fastest.lane_gbps for cable in rated if cable.rate is not None)
    if beyond <= FEW or beyond < (1 - LEAST_SHARE) * len(rated):
        return ""
    instead = "look with a newer tool, or leave out the column rate"
    what = f"no link is told faster than {fastest.speed}, and {beyond} of {len(rated)} cables are designed for more"
    return f"{what}: {instead}"


def _shrunken(design: Design, findings: tuple[FabricFinding, ...], off: frozenset[str]) -> str:
    """Why the fabric is not believed to have lost so much; "" where it is.

    Where hosts of a new site are not switched on yet, that they do not answer says nothing against the look.
    """
    silent = {name for finding in findings if finding.kind is Kind.dark_device for name in finding.devices}
    dark, awaited = len(silent - off), len(design.devices.keys() - (silent & off))
    if dark > FEW and dark > (1 - LEAST_SHARE) * awaited:
        return f"{dark} of {awaited} devices did not answer: the discovery saw another fabric, or part of it"
    missing = sum(finding.kind is Kind.missing for finding in findings)
    if missing > FEW and missing > (1 - LEAST_SHARE) * len(design.cables):
        return f"{missing} of {len(design.cables)} cables have no link: the discovery saw part of the fabric"
    return ""


def _lost(design: Design, links: tuple[DesignedLink, ...], off: frozenset[str]) -> str:
    """Why it is not believed that most cables lost their link, dark devices' too; "" where it is."""
    awaited = [
        one for cable, one in zip(design.cables, links, strict=True) if not off & {cable.a.device, cable.z.device}
    ]
    lost = sum(one.condition is LinkCondition.missing for one in awaited)
    if lost <= FEW or lost <= LOST_MOST * len(awaited):
        return ""
    return f"{lost} of {len(awaited)} cables have no link: the discovery saw another fabric, or part of it"
