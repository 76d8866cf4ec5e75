"""Condition of each designed cable: as designed, narrower or slower, without a link, or with another far end."""

from hostler.core.fabric.binding import Bound
from hostler.core.fabric.design import Cable, Design, Port
from hostler.core.fabric.rates import Rate, shortfall
from hostler.core.state.fabrics import DesignedLink, LinkCondition


def designed_links(design: Design, bound: Bound) -> tuple[DesignedLink, ...]:
    """All designed cables in the design's order, by the names that the devices themselves bear."""
    return tuple(_link(cable, bound) for cable in design.cables)


def _link(cable: Cable, bound: Bound) -> DesignedLink:
    a_found, z_found = bound.links.get(cable.a), bound.links.get(cable.z)
    rate = bound.rates.get(cable.a)
    return DesignedLink(
        a=str(cable.a),
        z=str(cable.z),
        rate=str(cable.rate or ""),
        condition=_condition(cable, (a_found, z_found), rate),
        a_found=str(a_found or ""),
        z_found=str(z_found or ""),
        found_rate=str(rate or ""),
    )


def _condition(cable: Cable, found: tuple[Port | None, Port | None], rate: Rate | None) -> LinkCondition:
    if found == (None, None):
        return LinkCondition.missing
    if found != (cable.z, cable.a):
        return LinkCondition.elsewhere
    if cable.rate is None:
        return LinkCondition.as_designed
    if rate is None:
        return LinkCondition.unrated
    return LinkCondition.degraded if shortfall(rate, cable.rate) else LinkCondition.as_designed


def sentence(link: DesignedLink) -> str:
    """One line for a technician: the port, its designed far end, and what was found there."""
    match link.condition:
        case LinkCondition.missing:
            return f"{link.a} is to lead to {link.z} and has no link"
        case LinkCondition.elsewhere:
            return f"{link.a} is to lead to {link.z} and {_found(link)}"
        case LinkCondition.degraded:
            return f"{link.a} to {link.z} runs at {link.found_rate} of {link.rate}"
        case LinkCondition.unrated:
            return f"{link.a} leads to {link.z} as designed; the discovery did not say at which rate of {link.rate}"
        case LinkCondition.as_designed:
            return f"{link.a} leads to {link.z} as designed"


def _found(link: DesignedLink) -> str:
    if link.a_found:
        return f"leads to {link.a_found}"
    return f"has no link; {link.z} leads to {link.z_found}"
