"""Nouns of a network that the cell knows: its design, where its discovery comes from, what was found, what stands open.

Ports are written "device:port" here, devices by the names of the design; whatever lays them out is in `core.fabric`.
"""

import re
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from hostler.core.state.subnets import SubnetDesign, SubnetFacts

VERSIONS_KEPT = 16
"""Design versions named beside the one in force; the journal holds their texts."""

CABLING = "cabling"
"""The kind of a finding's ticket, of a switch's incident, and the profile of a node's cabling step."""


class Model(Struct, frozen=True, forbid_unknown_fields=True):
    """Port names of a model. `hcas`: adapter by its name in documents. `per_cage`: ports behind one label.

    A technician reads "1/2" on a panel of two ports a cage where InfiniBand counts 2; with 0 or 1 both agree.
    """

    hcas: dict[str, str] = {}
    per_cage: int = 0

    def panel(self, port: str) -> str:
        """The label at the port, as it is printed on the panel."""
        if self.per_cage < 2 or not port.isdecimal():
            return port
        cage, place = divmod(int(port) - 1, self.per_cage)
        return f"{cage + 1}/{place + 1}"

    def port(self, label: str) -> str:
        """The port that documents or panels call so; the label itself where this model has no other name for it."""
        cage, slash, place = label.partition("/")
        if slash and self.per_cage > 1 and cage.isdecimal() and place.isdecimal():
            return str((int(cage) - 1) * self.per_cage + int(place))
        return self.hcas.get(label, label)


class FabricVerdict(StrEnum):
    """Result of a validation. Only the first two conclude anything."""

    as_designed = "as_designed"
    differs = "differs"
    partial = "partial"
    shrunken = "shrunken"

    @property
    def concludes(self) -> bool:
        """Whether anything follows from the validation."""
        return self in (FabricVerdict.as_designed, FabricVerdict.differs)


class LinkCondition(StrEnum):
    """How a designed cable was found. `unrated`: it lies as designed, and the tool did not say its width and speed."""

    as_designed = "as_designed"
    degraded = "degraded"
    unrated = "unrated"
    missing = "missing"
    elsewhere = "elsewhere"


class RouteSource(StrEnum):
    """Source of the ways between hosts: none, the switches' forwarding tables, or adaptive: each packet's choice."""

    none = ""
    tables = "tables"
    adaptive = "adaptive"


class DiscoverySource(Struct, frozen=True, forbid_unknown_fields=True):
    """Source of a fabric's discovery.

    `tool`: ibnetdiscover, iblinkinfo or ibdiagnet of the controller's host, or of the first of `nodes` whose agent
    answers, through an adapter and port as `ibstat` names them ("" and 0 for the tool's own choice); ufm, at `url`, its
    authority `ca` in PEM, name and password in `secret`; or lldp, told by the agents of the design's hosts and by the
    documents about switches in the controller's data directory. What takes longer than `timeout_s` is partial; 0, of
    a registration alone, is by the size of its design. `routes`: where the ways between hosts are known from.
    """

    adapter: str = ""
    port: int = 0
    timeout_s: float = 0.0
    tool: str = "ibnetdiscover"
    nodes: tuple[str, ...] = ()
    url: str = ""
    secret: str = ""
    ca: str = ""
    routes: RouteSource = RouteSource.none


class DesignVersion(Struct, frozen=True):
    """A version of a design: its digest, when it came, who brought it, and why.

    `seq`: the record that holds its text, 0 where that is not known.
    """

    digest: str
    at: datetime
    person: str
    reason: str = ""
    seq: int = 0


class PlannedWork(StrEnum):
    """Planned work that a finding belongs to: it goes on in its window, was done before it, or is not done yet."""

    none = ""
    under_way = "under_way"
    early = "early"
    late = "late"


class RecablingStage(StrEnum):
    """Stage of a planned re-cabling: its window is still to come, or open, or over and the new design holds."""

    planned = "planned"
    under_way = "under_way"
    over = "over"


class Recabling(Struct, frozen=True):
    """A change of a network's cables in a planned window of time. Before it the old design holds, after it the new one.

    `version` and what follows are of the new design. `before`: the text of the old one, once the new one holds; until
    then "". It stands until everything lies as the new design has it.
    """

    version: DesignVersion
    starts: datetime
    ends: datetime
    design: str
    models: dict[str, Model]
    hosts: dict[str, int]
    switches: int
    cables: int
    before: str = ""

    def stage(self, now: datetime) -> RecablingStage:
        """Stage at that moment. The window stays open until the new design was taken over."""
        if self.before:
            return RecablingStage.over
        return RecablingStage.planned if now < self.starts else RecablingStage.under_way


class WorkDone(Struct, frozen=True):
    """How far a re-cabling has come, by the parts that have nothing to do with each other. `begun` are not yet done."""

    stage: RecablingStage
    starts: datetime
    ends: datetime
    done: int
    begun: int
    parts: int


class FabricFindingSeen(Struct, frozen=True):
    """One independent repair as a validation found it. `key` stays the same until it is repaired.

    `ports` and `devices` take part, `switches` are those of the devices that are switches.
    `headline` names the place and what is wrong, `steps` are what a technician does there.
    `planned`: the re-cabling that it belongs to. `places`: rack, unit and name of its devices, those with work first.
    """

    key: str
    kind: str
    grade: str
    ports: tuple[str, ...]
    devices: tuple[str, ...]
    switches: tuple[str, ...]
    headline: str
    steps: tuple[str, ...]
    planned: PlannedWork = PlannedWork.none
    places: tuple[tuple[str, str, str], ...] = ()


class FabricCase(Struct, frozen=True):
    """A finding that stands open since then. `clean`: whole validations in a row that did not see it any more.

    `ticket` asks a technician for the repair; "" where none does, and `waits` says why. `done_by`: who has said last
    that it is repaired.
    """

    fabric: str
    finding: FabricFindingSeen
    since: datetime
    ticket: str = ""
    waits: str = ""
    clean: int = 0
    done_by: str = ""

    @property
    def id(self) -> str:
        """The case's key in the cell: of two fabrics the same ports may be wrong."""
        return f"{self.fabric}/{self.finding.key}"


class FabricLook(Struct, frozen=True):
    """One validation. `design` is the digest of the design that it was compared with, `digest` that of its result.

    `designed` and `found` count cables and links; `why` says what kept it from concluding anything. `work`: how far a
    planned re-cabling has come.
    """

    began: datetime
    design: str
    verdict: FabricVerdict
    designed: int
    found: int
    findings: int
    digest: str
    why: str = ""
    work: WorkDone | None = None


class Fabric(Struct, frozen=True):
    """A network with its design. `design` is the list of its cables as canonical CSV, `digest` that text's.

    `hosts` counts the designed ports of each host by its name, `switches` counts the switches. `look` is the last
    validation that told something new. `asked`: since when one is asked for at once, and `asked_why`. `subnet_design`:
    what it states of its subnet's managers, partitions and routing; `subnet`: what was told of them last.
    """

    name: str
    design: str
    digest: str
    source: DiscoverySource
    period_s: float
    hosts: dict[str, int]
    switches: int
    cables: int
    versions: tuple[DesignVersion, ...]
    models: dict[str, Model] = {}
    look: FabricLook | None = None
    asked: datetime | None = None
    asked_why: str = ""
    subnet_design: SubnetDesign = SubnetDesign()
    subnet: SubnetFacts = SubnetFacts()
    recabling: Recabling | None = None

    def names_switch(self, name: str) -> bool:
        """Whether the design has a switch of this name, as the first or third word of a line below the head."""
        if not name or name in self.hosts or f"{name}," not in self.design:
            return False
        word = re.escape(name)
        return re.search(rf"\n(?:{word},|[^,\n]*,[^,\n]*,{word},)", self.design) is not None


class DesignedLink(Struct, frozen=True, array_like=True):
    """A designed cable from `a` to `z`, and how it was found: each end's far port ("": none), and the rate."""

    a: str
    z: str
    rate: str
    condition: LinkCondition
    a_found: str
    z_found: str
    found_rate: str

    def seen_from(self, device: str) -> "DesignedLink":
        """The same cable with the device's own port as `a`."""
        if self.a.startswith(f"{device}:"):
            return self
        return DesignedLink(self.z, self.a, self.rate, self.condition, self.z_found, self.a_found, self.found_rate)


class FabricLinks(Struct, frozen=True):
    """All designed cables of a network in the design's order, and by device the places of its own among them."""

    rows: tuple[DesignedLink, ...] = ()
    of_device: dict[str, tuple[int, ...]] = {}

    def of(self, device: str) -> tuple[DesignedLink, ...]:
        """The designed cables of a device, each with the device's port as `a`."""
        return tuple(self.rows[number].seen_from(device) for number in self.of_device.get(device, ()))


class FabricReport(Struct, frozen=True):
    """Report of one validation: its result, the findings, the condition of each designed cable."""

    fabric: str
    look: FabricLook
    findings: tuple[FabricFindingSeen, ...] = ()
    links: FabricLinks = FabricLinks()
