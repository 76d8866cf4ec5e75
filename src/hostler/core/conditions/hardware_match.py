"""Whether a node's links, settings and places are what its SKU's hardware manifest says: one verdict per aspect.

What nobody has read in this boot is inconclusive and says who could read it; it is never failed. Every verdict names
slot, expected and found, and what a technician does about it.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.conditions.sku_match import Gap
from hostler.core.diagnose.serials import meaningful
from hostler.core.state import hardware as hw
from hostler.core.state.assets import DPU_BMC
from hostler.core.state.configuration import Sanitising, Sku, scaled
from hostler.core.state.dpus import bmcs_of, dpus_of
from hostler.core.state.fleet import Fleet
from hostler.core.state.hardware import HardwareManifest
from hostler.core.state.live_state import LiveNode
from hostler.core.state.model import Node, Part, Phase, Verdict
from hostler.core.state.node_places import placed
from hostler.core.state.sensor_watch import PAUSE, SensorWatch

CHECKS = "hardware."
"""Before an aspect's name in the node's checks."""
_EMPTY = "empty"


class AspectVerdict(Struct, frozen=True):
    """Verdict on one aspect of a node's hardware; `gaps` are where it is not as the manifest, or not seen.

    `text` says what was seen where it passed. `advice` is what is done about a gap. `until`: when it may be another by
    the clock alone, None where it waits for a reading.
    """

    aspect: str
    verdict: Verdict
    gaps: tuple[Gap, ...] = ()
    text: str = ""
    advice: str = ""
    until: datetime | None = None

    def __str__(self) -> str:
        if not self.gaps:
            return f"{self.aspect}: {self.text}"
        told = "; ".join(str(gap) for gap in self.gaps[:_NAMED])
        more = f"; and {len(self.gaps) - _NAMED} more" if len(self.gaps) > _NAMED else ""
        return f"{told}{more} ({self.advice})"


_NAMED = 4


class NodeReadings(Struct, frozen=True):
    """One node, its SKU, and what is known of its hardware in this boot. `stale`: sources that read an earlier boot."""

    node: Node
    sku: Sku
    manifest: HardwareManifest
    sensors: SensorWatch | None
    parts: tuple[Part, ...]
    said: dict[str, str]
    stale: frozenset[str]
    length: timedelta

    def told(self, name: str) -> str | None:
        """The agent's word of it, else the BMC's; None where neither does."""
        found = self.said.get(f"{hw.AGENT}/{name}")
        return found if found is not None else self.said.get(f"{hw.BMC}/{name}")

    def why_not(self, aspect: str, source: str) -> str:
        """Why nothing was read: the source's own word, else that nobody has looked in this boot."""
        if (why := self.said.get(f"{source}/{hw.UNREAD}{aspect}")) is not None:
            return f"nothing: {why}"
        who = "its agent" if source == hw.AGENT else "its BMC"
        return f"nothing: {who} read it in an earlier boot" if source in self.stale else f"nothing: {who} has told none"


def verdicts(
    fleet: Fleet, live: LiveNode, node: Node, now: datetime, since: datetime | None = None
) -> tuple[AspectVerdict, ...]:
    """One verdict for each aspect that the SKU's hardware manifest names; none where it has no manifest.

    `since`: what sensors showed before that counts for nothing, None for no such moment.
    """
    sku = fleet.configuration_of(node).skus.get(node.sku)
    if sku is None or sku.hardware is None:
        return ()
    boots = dict(node.hardware_boots)
    stale = frozenset(source for source, boot in boots.items() if boot != node.boot_id)
    pairs = (*node.hardware, *node.hardware_own)
    said = {name: value for name, value in pairs if name.partition("/")[0] not in stale}
    length = timedelta(seconds=scaled(fleet.policy_of(node), sku.hardware.sensors_s))
    parts, sensors = tuple(fleet.parts.of(node.id)), _fresh(live.sensor_watch, now, since)
    here = NodeReadings(node, sku, sku.hardware, sensors, parts, said, stale, length)
    hidden = hidden_aspects(node, sku.hardware)
    return tuple(judge(here) for name, (named, judge) in ASPECTS.items() if named(sku.hardware) and name not in hidden)


def hidden_aspects(node: Node, manifest: HardwareManifest) -> tuple[str, ...]:
    """Aspects of the manifest that nobody can ever read of this node: it has no BMC, and only a BMC tells of them."""
    return () if node.binding("bmc") else tuple(name for name in _BY_BMC if ASPECTS[name][0](manifest))


def _fresh(watch: SensorWatch | None, now: datetime, since: datetime | None) -> SensorWatch | None:
    """The watch as far as it is of the present; None where the BMC has fallen silent."""
    if watch is None or now - watch.last.at > PAUSE or (since is not None and watch.last.at < since):
        return None
    if since is None or watch.began >= since:
        return watch
    clean = max(watch.clean_since, since) if watch.clean_since is not None else None
    wrong = watch.wrong_at if watch.wrong_at is not None and watch.wrong_at >= since else None
    return replace(watch, began=since, clean_since=clean, wrong_at=wrong)


def _verdict(aspect: str, gaps: list[Gap], passed: str, advice: str, until: datetime | None = None) -> AspectVerdict:
    """Failed where a gap was seen, inconclusive where all gaps are what nobody has seen."""
    if not gaps:
        return AspectVerdict(aspect, Verdict.passed, text=passed)
    found = Verdict.failed if any(gap.seen for gap in gaps) else Verdict.inconclusive
    shown = sorted(gaps, key=lambda gap: not gap.seen)
    return AspectVerdict(aspect, found, tuple(shown), advice=advice, until=until)


def _pcie(here: NodeReadings) -> AspectVerdict:
    gaps = [gap for slot, wanted in sorted(here.manifest.pcie.items()) for gap in _link(here, slot, wanted)]
    advice = "seat the card, its riser and its cable anew; a slot that stays narrow is the board's"
    return _verdict("pcie", gaps, f"{len(here.manifest.pcie)} links as wide and fast as the SKU says", advice)


def _link(here: NodeReadings, slot: str, wanted: str) -> Iterator[Gap]:
    """The agent's word counts; the BMC's where the agent has none. One that says it is narrow is heard in any case."""
    found = [(source, text) for source in (hw.AGENT, hw.BMC) if (text := _link_of(here, source, slot)) is not None]
    least = hw.pcie_link(wanted)
    assert least is not None, "policy check has read it"
    known = [(source, link) for source, text in found if (link := hw.pcie_link(text)) is not None]
    if not known:
        said = f"{found[0][1]!r}, which is no link" if found else here.why_not("pcie", hw.AGENT)
        yield Gap("PCIe link", slot, wanted, said, seen=False)
    for source, link in known[:1]:
        if not link.carries(least):
            yield Gap("PCIe link", slot, str(least), f"{link} by the {'agent' if source == hw.AGENT else 'BMC'}")


def _link_of(here: NodeReadings, source: str, slot: str) -> str | None:
    if source == hw.AGENT:
        return here.said.get(f"{hw.AGENT}/{hw.PCIE}{slot}")
    names = (slot, *(name for name, ours in here.sku.bmc_slots.items() if ours == slot))
    return next((text for n in names if (text := here.said.get(f"{hw.BMC}/{hw.PCIE}{n}")) is not None), None)


def _bios(here: NodeReadings) -> AspectVerdict:
    """Compare attributes; one that Zap, which follows, writes and verifies is no gap before it."""
    gaps: list[Gap] = []
    read = any(name.startswith(f"{hw.BMC}/{hw.BIOS}") for name in here.said)
    plan = here.node.plan
    before_zap = here.node.phase is Phase.seatrial or (plan is not None and plan.to_phase == Phase.zap)
    written = hw.bios_to_write(here.node, here.manifest) if before_zap else {}
    coming: list[str] = []
    for name, wanted in sorted(here.manifest.bios.items()):
        found = here.said.get(f"{hw.BMC}/{hw.BIOS}{name}")
        if name in written and found != wanted and read:
            coming.append(f"{name} is {found or 'not listed'}")
        elif found is None:
            said = "nothing: this BIOS lists no such attribute" if read else here.why_not("bios", hw.BMC)
            gaps.append(Gap("BIOS attribute", name, wanted, said, seen=False))
        elif found != wanted:
            gaps.append(Gap("BIOS attribute", name, wanted, found))
    advice = "set it in the BIOS setup or through the BMC, and restart the node"
    passed = f"{len(here.manifest.bios) - len(coming)} BIOS attributes as the SKU says"
    left = f", Zap writes {len(coming)}: {', '.join(coming[:_NAMED])}" if coming else ""
    return _verdict("bios", gaps, passed + left, advice)


def _neighbours(here: NodeReadings) -> AspectVerdict:
    gaps: list[Gap] = []
    for port, template in sorted(here.manifest.neighbours.items()):
        wanted = placed(here.node, template)
        found = here.said.get(f"{hw.AGENT}/{hw.LLDP}{port}")
        if found == wanted:
            continue
        if found:
            gaps.append(Gap("cable", port, wanted, found))
        elif here.said.get(f"{hw.AGENT}/{hw.CARRIER}{port}") == "0":
            gaps.append(Gap("cable", port, wanted, "no link"))
        else:
            gaps.append(Gap("cable", port, wanted, here.why_not("lldp", hw.AGENT), seen=False))
    advice = "move the cable to the port that is expected; a port without a neighbour needs LLDP on its switch"
    return _verdict("neighbours", gaps, f"{len(here.manifest.neighbours)} ports lead where they should", advice)


def _power_supplies(here: NodeReadings) -> AspectVerdict:
    needed = here.manifest.supplies_needed
    wanted, advice = (
        f"{needed + 1} well",
        "check the cord and the outlet of each supply, then replace the one that is dead",
    )
    watch = here.sensors
    if watch is None:
        silent = "nothing: its BMC has shown no sensors since the step began"
        return _verdict("power_supplies", [Gap("power supplies", "", wanted, silent, seen=False)], "", advice)
    gaps: list[Gap] = []
    look = watch.last
    if look.supplies is not None and look.supplies <= needed:
        gaps.append(Gap("power supplies", "", wanted, f"{look.supplies} well"))
    if look.redundancy not in ("", "ok", "enabled"):
        gaps.append(Gap("power supplies", "", "redundant", look.redundancy))
    if look.supplies is None and not look.redundancy:
        said = f"nothing: its BMC lists no supplies{f', {look.gaps}' if look.gaps else ''}"
        gaps.append(Gap("power supplies", "", wanted, said, seen=False))
    count = "the group" if look.supplies is None else f"{look.supplies} supplies"
    return _verdict("power_supplies", gaps, f"{count} well, {needed} carry the load", advice)


def _sensors(here: NodeReadings) -> AspectVerdict:
    watch, length = here.sensors, here.length
    advice = "find what is out of range: a fan, a blocked inlet, a supply, a sensor"
    wanted = f"all in range for {length.total_seconds() / 60:g} min"
    if watch is None:
        silent = "nothing: its BMC has shown no sensors since the step began"
        return _verdict("sensors", [Gap("sensors", "", wanted, silent, seen=False)], "", advice)
    if watch.wrong_at is not None and watch.last.at - watch.wrong_at < length:
        gaps = [Gap("sensor", which.partition(" ")[2], wanted, text) for which, text in watch.wrong]
        return _verdict("sensors", gaps, "", advice, watch.wrong_at + length)
    if watch.last.unread or not watch.last.read:
        said = f"no believable reading of {', '.join(watch.last.unread)}" if watch.last.unread else "no reading at all"
        why = f"{said}{f', {watch.last.gaps}' if watch.last.gaps else ''}"
        return _verdict("sensors", [Gap("sensors", "", wanted, why, seen=False)], "", advice)
    since = watch.clean_since
    if since is None or watch.last.at - since < length:
        ends = f"watched until {(since or watch.last.at) + length:%H:%M} UTC"
        return _verdict(
            "sensors", [Gap("sensors", "", wanted, ends, seen=False)], "", advice, (since or watch.last.at) + length
        )
    return _verdict("sensors", [], f"{watch.last.read} readings in range since {since:%H:%M} UTC", advice)


def _memory_map(here: NodeReadings) -> AspectVerdict:
    gaps: list[Gap] = []
    for socket, gib in sorted(here.manifest.memory_gib.items()):
        wanted, found = f"{gib:g} GiB" if gib else _EMPTY, here.told(f"{hw.DIMM}{socket}")
        if found is None:
            gaps.append(Gap("memory module", socket, wanted, here.why_not("dimm", hw.AGENT), seen=False))
        elif found != wanted:
            gaps.append(Gap("memory module", socket, wanted, found))
    advice = "seat the module, or put the one of the size that is expected in this socket"
    return _verdict("memory_map", gaps, f"{len(here.manifest.memory_gib)} sockets as the SKU says", advice)


def _drives(here: NodeReadings) -> AspectVerdict:
    drives = [part for part in here.parts if part.kind == "drive"]
    gaps: list[Gap] = []
    wanted = here.sku.parts.get("drive", 0)
    if len(drives) < wanted:
        seen = bool({"drive", "bmc:drive"} & {*here.node.inventory_covers})
        gaps.append(Gap("drives", "", str(wanted), str(len(drives)), seen=seen))
    for drive in drives:
        word = here.told(f"{hw.DRIVE}{drive.slot}")
        if word is None:
            gaps.append(Gap("drive", drive.slot, "ok", here.why_not("drive", hw.AGENT), seen=False))
        elif word.lower() != "ok":
            gaps.append(Gap("drive", drive.slot, "ok", word, seen=word != "silent"))
    return _verdict("drives", gaps, f"{len(drives)} drives say that they are well", "replace the drive in this slot")


def _serials(here: NodeReadings) -> AspectVerdict:
    wanted = here.node.binding("serial")
    found = {n: v for n in _DMI if (v := here.said.get(f"{hw.AGENT}/{hw.DMI}{n}")) is not None}
    advice = (
        f"write {wanted or 'the number of its label'} into DMI with the board vendor's tool (AMIDEEFI /SS, "
        "sum -c EditDmiInfo, ipmitool fru edit 0), and restart the node"
    )
    gaps: list[Gap] = []
    if not found:
        gaps.append(Gap("serial number", "DMI", wanted, here.why_not("dmi", hw.AGENT), seen=False))
    elif not meaningful(found.get(_DMI[0], "")):
        shown = f"{found[_DMI[0]]!r}, a vendor's default" if found.get(_DMI[0]) else "a blank one"
        gaps.append(Gap("serial number", "DMI", wanted or "the number of its label", shown))
    elif wanted and wanted not in found.values():
        gaps.append(Gap("serial number", "DMI", wanted, found[_DMI[0]]))
    return _verdict("serials", gaps, f"DMI shows {wanted or found.get(_DMI[0], '')}", advice)


_DMI = ("product_serial", "board_serial", "chassis_serial")


def _erasable(here: NodeReadings) -> AspectVerdict:
    """Tell what sanitising would lack before the node has a tenant, not when one leaves it."""
    rules, wanted = here.sku.sanitise, "erased between tenants"
    drives = sorted(part.slot for part in here.parts if part.kind == "drive" and part.slot not in rules.keep)
    gaps: list[Gap] = []
    for slot in (*drives, *((hw.TPM,) if rules.tpm else ())):
        word = here.said.get(f"{hw.AGENT}/{hw.ERASE}{slot}", hw.CANNOT_ERASE)
        if word.startswith(hw.CANNOT_ERASE):
            said = here.why_not("erase", hw.AGENT) if word == hw.CANNOT_ERASE else word
            gaps.append(Gap("TPM" if slot == hw.TPM else "drive", slot, wanted, said, seen=False))
    advice = "give the agent what is named (nvme-cli, --allow-actions, --scratch), or name the slot in sanitise.keep"
    if rules.accounts is not None:
        gaps.extend(_accounts_unreached(here.node, rules))
    if any(gap.kind == _DPUS for gap in gaps):
        named = f"hostler node rebind {here.node.id} --kind {DPU_BMC} --value https://DPU-BMC,… --reason …"
        advice = f"{advice}; name the BMC of every DPU ({named}; docs/how-to/sanitise-a-node.md)"
    return _verdict("erasable", gaps, f"{len(drives)} drives can be erased", advice)


_DPUS = "DPU accounts"


def _accounts_unreached(node: Node, rules: Sanitising) -> Iterator[Gap]:
    """The BMCs whose accounts would be compared when a tenant leaves, and that nobody has named."""
    if not node.binding("bmc"):
        yield Gap("BMC accounts", "", "compared", "nothing: the node has no bmc binding", seen=False)
    cards, named = dpus_of(node, rules.keep), bmcs_of(node)
    if len(cards) > len(named):
        told = "nothing: no BMC of a DPU is named" if not named else f"{len(named)} of its DPUs' BMCs named"
        where = " ".join(one.slot for one in cards)
        yield Gap(_DPUS, where, f"{len(cards)} BMCs compared", told, seen=False)


ASPECTS: dict[str, tuple[Callable[[HardwareManifest], bool], Callable[[NodeReadings], AspectVerdict]]] = {
    "pcie": (lambda m: bool(m.pcie), _pcie),
    "bios": (lambda m: bool(m.bios), _bios),
    "neighbours": (lambda m: bool(m.neighbours), _neighbours),
    "power_supplies": (lambda m: m.supplies_needed > 0, _power_supplies),
    "sensors": (lambda m: m.sensors_s > 0, _sensors),
    "memory_map": (lambda m: bool(m.memory_gib), _memory_map),
    "drives": (lambda m: m.drives, _drives),
    "serials": (lambda m: m.serials, _serials),
    "erasable": (lambda m: m.erasable, _erasable),
}
"""Aspect → whether a manifest names it, and how it is judged."""
_BY_BMC = ("bios", "power_supplies", "sensors")
"""Aspects that a BMC alone shows."""
