"""Returns to vendors and stock as people ask for them: held to the order of the steps, and to what is on the shelf."""

from msgspec.structs import replace

from hostler.core.intents.ask import AnyAsk, Ask, Granted, Handler, Handlers, RefusalError, node_of
from hostler.core.policy import fitted_adapters, rma_cases
from hostler.core.state import events as e
from hostler.core.state.assets import is_mac, normal_mac
from hostler.core.state.model import Node, Part
from hostler.core.state.rma_cases import (
    FIELDS_MOST,
    MACS_MOST,
    CaseKind,
    CaseResult,
    CaseStep,
    RmaCase,
    StockLine,
    TakenStep,
)
from hostler.core.state.verbs.rma_cases import AdvanceRma, CloseRma, CountStock, EditRma, OpenRma
from hostler.core.tables.rma_steps import KEEPS_SPARES, NEEDED, SETTLES, next_steps

CASES_MOST = 20_000
"""Open cases of a cell: a fifth of the largest fleet."""
LINES_MOST = 10_000
"""Lines of stock of a cell."""


def open_case(ask: Ask[OpenRma]) -> Granted:
    """A person sends a part or the machine to its vendor. Raises RefusalError."""
    node, act, intent = node_of(ask), ask.act, ask.intent
    fleet = ask.context.fleet
    if len(fleet.rma_cases) >= CASES_MOST:
        raise RefusalError(f"{CASES_MOST:,} returns are open: close those that are settled (hostler rma list)")
    part = _part(ask, node) if act.serial else None
    kind = act.kind or (CaseKind.on_site_swap if part is not None else CaseKind.whole_node)
    if (part is None) is not (kind is CaseKind.whole_node):
        raise RefusalError("a whole node goes without --serial; a part is named by its --serial and swapped or sent")
    case = rma_cases.drafted(ask.context, node, part, act.fault or intent.reason)
    case = replace(
        case,
        kind=kind,
        vendor=act.vendor,
        vendor_case=act.vendor_case,
        steps=(TakenStep(CaseStep.requested, ask.context.now, intent.person),),
    )
    if (same := rma_cases.borne(fleet, case.serial)) is not None:
        raise RefusalError(f"{case.serial} is to be returned in case {same.id} already")
    case = rma_cases.dated(ask.context, case, act.due_days)
    return f"{case.id} is open for {_bearer(case)}", (e.RmaCaseOpened(case, intent.person, intent.reason),)


def _part(ask: Ask[OpenRma], node: Node) -> Part:
    part = ask.context.fleet.parts.get(ask.act.serial)
    if part is None or part.node != node.id:
        where = f"is in {part.node or 'no node'}" if part is not None else "is not known"
        raise RefusalError(f"part {ask.act.serial} {where}, not in {node.id}; see `hostler part list`")
    return part


def _bearer(case: RmaCase) -> str:
    return f"{case.component} {case.serial} of {case.node}" if case.slot else f"{case.node} ({case.serial})"


def _case(ask: AnyAsk) -> RmaCase:
    case = ask.context.fleet.rma_cases.get(ask.intent.target)
    if case is None:
        raise RefusalError(f"no open return {ask.intent.target}; see `hostler rma list`")
    return case


def advance(ask: Ask[AdvanceRma]) -> Granted:
    """A step of the case was taken. Raises RefusalError where another comes first, or no spare is there to fit."""
    case, act, intent = _case(ask), ask.act, ask.intent
    step = CaseStep(act.step)
    _check_order(case, step)
    line = rma_cases.spares(ask.context.fleet, case.site, case.part_number)
    if step is CaseStep.fitted and case.kind in KEEPS_SPARES and not line.count:
        raise RefusalError(
            f"no {case.part_number} lies at {case.site or 'a site without a name'}: count the stock first "
            f"(hostler stock count); what an inventory shows is fitted without your word"
        )
    case = replace(
        case,
        vendor_case=act.vendor_case or case.vendor_case,
        replacement=act.replacement or case.replacement,
        fitted=(act.replacement or case.replacement) if step is CaseStep.fitted else case.fitted,
        macs=_macs(ask, case, act.mac) if act.mac else case.macs,
    )
    moved, *spare = rma_cases.taken(ask.context, case, step, intent.person, intent.reason)
    if act.due_days is not None and isinstance(moved, e.RmaCaseChanged):
        moved = replace(moved, case=rma_cases.dated(ask.context, moved.case, act.due_days))
    return f"{step} is recorded", (moved, *spare)


def _check_order(case: RmaCase, step: CaseStep) -> None:
    if step in case.taken:
        raise RefusalError(f"{case.id}: {step} was taken already; see `hostler rma show {case.id}`")
    open_now = [row.step for row in next_steps(case) if row.step is not CaseStep.closed]
    if step not in open_now:
        may = ", ".join(open_now) or "hostler rma close"
        raise RefusalError(f"{case.id} is {case.state}: {step} is not next; what may be is {may}")


def edit(ask: Ask[EditRma]) -> Granted:
    """Fields of the case are filled in. Raises RefusalError on a form that cannot be read, or one without fields."""
    case, act, intent = _case(ask), ask.act, ask.intent
    fields = {**dict(case.fields), **_fields(act.fields)}
    if len(fields) > FIELDS_MOST:
        raise RefusalError(f"{len(fields)} fields; name at most {FIELDS_MOST}")
    changed = replace(
        case,
        vendor=act.vendor or case.vendor,
        vendor_case=act.vendor_case or case.vendor_case,
        replacement=act.replacement or case.replacement,
        macs=_macs(ask, case, act.mac) if act.mac else case.macs,
        fields=tuple((name, value) for name, value in fields.items() if value),
    )
    if act.due_days is not None:
        changed = rma_cases.dated(ask.context, changed, act.due_days)
    if changed == case:
        raise RefusalError(
            "nothing to change: give --vendor, --vendor-case, --fields, --replacement, --mac or --due-days"
        )
    return "its fields are changed", (e.RmaCaseChanged(changed, intent.person, intent.reason),)


def _macs(ask: AnyAsk, case: RmaCase, text: str) -> tuple[str, ...]:
    """Addresses of the adapter that is to be fitted, which nobody else has. Raises RefusalError."""
    fleet = ask.context.fleet
    macs = tuple(dict.fromkeys(map(normal_mac, text.split(","))))
    if len(macs) > MACS_MOST:
        raise RefusalError(f"{len(macs)} MAC addresses; a case lists {MACS_MOST} at most")
    if case.node not in fleet.nodes:
        raise RefusalError(f"{case.node} is retired: nothing boots as it any more")
    for mac in macs:
        if problem := mac_problem(mac):
            raise RefusalError(problem)
        if holders := fitted_adapters.holders(fleet, mac):
            raise RefusalError(f"MAC address {mac} is that of {holders[0]} already")
        if (other := fitted_adapters.announcing(fleet, mac)) is not None and other.id != case.id:
            raise RefusalError(f"MAC address {mac} is to be fitted in case {other.id} of {other.node}")
    return macs


_MULTICAST = 0x01


def mac_problem(mac: str) -> str:
    """Why no adapter has this address, "" where one may."""
    if not is_mac(mac):
        return f"{mac[:40]!a} is no MAC address: write six pairs, such as 52:54:00:3c:11:08"
    if int(mac[:2], 16) & _MULTICAST or not int(mac.replace(":", ""), 16):
        return f"{mac} is no adapter's own MAC address: it is a group's, or empty"
    return ""


def _fields(text: str) -> dict[str, str]:
    """Name → value; a value that is left empty takes the field off the case."""
    found: dict[str, str] = {}
    for one in filter(None, (piece.strip() for piece in text.split(";"))):
        name, equals, value = one.partition("=")
        name, value = name.strip(), value.strip()
        if not equals or not name.isprintable() or not name or len(name) > 60 or not value.isprintable():
            raise RefusalError(f"field {one[:60]!r}: write name=value, with ; between fields")
        found[name] = value
    return found


def close(ask: Ask[CloseRma]) -> Granted:
    """The case is settled. A replacement that was dead on arrival bears the next one. Raises RefusalError."""
    case, result, intent = _case(ask), ask.act.result, ask.intent
    if missing := [step for step in NEEDED[result] if step not in case.taken]:
        raise RefusalError(f"{case.id} is {case.state}: it cannot be {result} before it is {' and '.join(missing)}")
    if result is CaseResult.withdrawn and case.taken & SETTLES:
        raise RefusalError(f"{case.id} is {case.state}: what was sent or fitted has to be settled with the vendor")
    closed = e.RmaCaseClosed(case, result, intent.person, intent.reason)
    if result is not CaseResult.doa:
        return f"closed: {result}", (closed,)
    again = _again(ask, case)
    return f"closed: {result}; {again.id} is open for {again.serial}", (
        closed,
        e.RmaCaseOpened(again, intent.person, f"what case {case.id} brought was dead on arrival"),
    )


def _again(ask: Ask[CloseRma], case: RmaCase) -> RmaCase:
    """The case of what the vendor sent, borne by its serial where that is known."""
    steps = (TakenStep(CaseStep.requested, ask.context.now, ask.intent.person),)
    fresh = replace(
        case,
        id=f"rma-{case.node}-{ask.context.fleet.cell.seq}",
        serial=case.fitted or case.serial,
        steps=steps,
        opened=ask.context.now,
        vendor_case="",
        replacement="",
        fitted="",
        macs=(),
        fault=f"dead on arrival in case {case.id}: {case.fault}"[:500],
    )
    return rma_cases.dated(ask.context, fresh)


def count(ask: Ask[CountStock]) -> Granted:
    """A person has counted. Raises RefusalError on a name that cannot be one."""
    act, intent, fleet = ask.act, ask.intent, ask.context.fleet
    if not act.site.strip() or not act.part_number.strip() or "/" in act.site:
        raise RefusalError("name a --site (without a slash) and a --part-number")
    known = rma_cases.spares(fleet, act.site, act.part_number)
    if known.id not in fleet.stock and len(fleet.stock) >= LINES_MOST:
        raise RefusalError(f"stock has {LINES_MOST:,} lines already; count those that are used up to 0")
    line = StockLine(act.site, act.part_number, act.count, known.least if act.least is None else act.least)
    text = f"{line.count} of {line.part_number} at {line.site} (before: {known.count})"
    return text, (e.StockChanged(line, known.count, intent.person, intent.reason),)


HANDLERS: Handlers = {
    OpenRma: Handler(open_case),
    AdvanceRma: Handler(advance),
    EditRma: Handler(edit),
    CloseRma: Handler(close),
    CountStock: Handler(count),
}
