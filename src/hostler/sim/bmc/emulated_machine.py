"""One emulated server and its BMC as a pure machine: time is an argument, chance a seed, reactions are hooks."""

from collections import Counter, deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import blake2s

import msgspec
from msgspec import Struct, field

from hostler.core.state.model import Part

MAX_LOG = 1000
MAX_TASKS = 64
OFF, ON = "Off", "On"
RESETS = (
    "On",
    "ForceOff",
    "GracefulShutdown",
    "ForceRestart",
    "GracefulRestart",
    "PowerCycle",
    "Nmi",
    "ForceOn",
)
COMPONENTS = ("BIOS", "BMC", "HMC", "GPU", "Retimer")
SENSORS = {"inlet_temp_c": 24.0, "gpu0_temp_c": 38.0, "fan1_rpm": 8200.0, "total_power_w": 1900.0}
_RESETS_ON = {"On", "ForceOn"}
_RESETS_OFF = {"ForceOff", "GracefulShutdown"}
_CDS = frozenset({"Cd", "UsbCd"})
_DRIVE = "drive "
_FIRST_START = datetime(2026, 1, 1, tzinfo=UTC)

Hook = Callable[[str, str, datetime], None]


class BmcRefusalError(Exception):
    """The BMC says no; `status` is the HTTP status it says it with, `message_id` the message's name in a registry."""

    def __init__(self, status: int, message: str, message_id: str = "Base.1.12.GeneralError") -> None:
        super().__init__(message)
        self.status = status
        self.message_id = message_id


class Delays(Struct, frozen=True):
    """How long things take: (least, most) in seconds, drawn from `seed`, times `scale`.

    Power-off within 1–11 s is sushy-tools' figure, 90–200 s away that of BMCs seen after their own update.
    `deaf` comes after `away`: the BMC answers a ping and Redfish does not yet.
    """

    scale: float = 1.0
    seed: int = 0
    on: tuple[float, float] = (1, 6)
    off: tuple[float, float] = (1, 11)
    graceful_off: tuple[float, float] = (15, 60)
    restart: tuple[float, float] = (5, 15)
    boot: tuple[float, float] = (90, 240)
    write: tuple[float, float] = (60, 300)
    away: tuple[float, float] = (90, 200)
    deaf: tuple[float, float] = (10, 30)
    slow_medium: tuple[float, float] = (12, 20)


class Quirks(Struct, frozen=True):
    """How this BMC misbehaves.

    `lies_about`: components whose update reports success and changes nothing. `fails_on`: those whose update
    fails and says so. `forgets_tasks`: a task is deleted once it succeeded. `missing_keys`: top-level JSON keys
    it leaves out until it is reset. `lenient`: power actions in the wrong state are accepted instead of a 400.
    `taskless`: an update is accepted without a task. `refuses_images`: no image's URL is taken. `needs_off`: components
    that are written while the server is off only. `hides`: components of which no version is listed once they were
    written, until the BMC is reset. `flaps`: components that show their version before and after in turns, once they
    were written. `unstaged`: what is written is not listed before it runs. `needs_ac`: components whose new version
    runs only after the mains were off. `recovery`: component → the version that its spare image holds. `drives`:
    what is wrong with its virtual drives: "no_licence", "not_inserted" (a request is taken and nothing is in), "slow"
    (it takes a while), "eject_refused", "kept" (an eject is taken and the medium stays), "forgets_boot" (a boot from
    one is taken and not kept). `bios`: attribute → what becomes of a change of it: "read_only" and "locked" (a setup
    password) are refused, "ignored" is taken and gone with the next start, "stuck" waits for ever.
    `expands`: how many levels of a document it inlines on request. `older`: it has Thermal and Power instead of Sensors
    and the subsystems, and its LED is IndicatorLED. `vendor`: whose layout it has (`vendors.VENDORS`), "" for the plain
    one.
    """

    lies_about: frozenset[str] = frozenset()
    fails_on: frozenset[str] = frozenset()
    forgets_tasks: bool = False
    missing_keys: frozenset[str] = frozenset()
    lenient: bool = False
    expands: int = 6
    older: bool = False
    vendor: str = ""
    taskless: bool = False
    refuses_images: bool = False
    needs_off: frozenset[str] = frozenset()
    hides: frozenset[str] = frozenset()
    flaps: frozenset[str] = frozenset()
    unstaged: bool = False
    needs_ac: frozenset[str] = frozenset()
    recovery: dict[str, str] = {}
    drives: frozenset[str] = frozenset()
    bios: dict[str, str] = {}


DELAYS = Delays()
NO_QUIRKS = Quirks()


class Hardware(Struct, frozen=True):
    """Hardware of the server and what it shows.

    A new version of a `staged` component runs from the next power-on, that of another at once; "BMC" restarts
    the BMC. Sensor names end in their unit as in the driver's facts; `limits_c` are critical limits by sensor.
    `supplies` are power supplies and `fans` fans by health, `leaks` detectors by state, all in Redfish's words; of
    supplies and fans so many are needed. `bios_brings`: version of a BIOS → settings with which it begins. `links` are
    lanes and PCIe type by slot, `modules_mib` the sizes of memory modules; what is not in them is not shown.
    """

    serial: str
    model: str = "HGX H100 8-GPU"
    manufacturer: str = "Emulated"
    parts: tuple[Part, ...] = ()
    firmware: dict[str, str] = field(default_factory=lambda: dict.fromkeys(COMPONENTS, "1.0.0"))
    staged: frozenset[str] = frozenset({"BIOS", "GPU", "Retimer"})
    sensors: dict[str, float] = field(default_factory=lambda: dict(SENSORS))
    limits_c: dict[str, float] = field(default_factory=lambda: {"gpu0_temp_c": 92.0})
    supplies: dict[str, str] = field(default_factory=lambda: {f"psu{n}": "OK" for n in range(6)})
    fans: dict[str, str] = field(default_factory=lambda: {f"fan{n}": "OK" for n in range(1, 7)})
    supplies_needed: int = 4
    fans_needed: int = 5
    leaks: dict[str, str] = field(default_factory=lambda: {"manifold": "OK"})
    bios: dict[str, object] = field(default_factory=lambda: {"BootMode": "Uefi", "SriovEnable": "Enabled"})
    bios_brings: dict[str, dict[str, object]] = field(default_factory=dict)
    links: dict[str, tuple[int, str]] = field(default_factory=dict)
    modules_mib: dict[str, int] = field(default_factory=dict)


class Image(Struct, frozen=True):
    """Content of an update file. Emulated images are this struct as JSON."""

    component: str
    version: str


class EmulatedBootOverride(Struct, frozen=True):
    """The boot override; "Once" is used up by the next boot."""

    enabled: str = "Disabled"
    target: str = "None"
    uri: str = ""


class EmulatedTask(Struct):
    """A firmware update. `state` and `status` are Redfish's words."""

    id: str
    component: str
    image: str
    started: datetime
    state: str = "Running"
    status: str = "OK"
    message: str = "The image is being fetched."
    version: str = ""


class BmcLogLine(Struct, frozen=True):
    """One line of the system event log."""

    id: int
    created: datetime
    severity: str
    message: str


class PartFault(Struct, frozen=True):
    """Fault of a part: a word of health, and a message out of a registry where one is given."""

    health: str = "Critical"
    message_id: str = ""
    message: str = ""


class Actuation(Struct, frozen=True):
    """Act that the BMC was asked to do, whether or not it did it."""

    at: datetime
    kind: str
    accepted: bool


class Machine:
    """A server with its BMC. Every call with `now` first lets happen what was due by then.

    The hooks `on_power(system_id, "On" | "Off", moment)` and `on_boot(system_id, "Pxe" | "UefiHttp" | "Hdd" …,
    moment)` are called with the moment at which it happened. `counts` and `received` tell every actuation that
    reached the BMC: by Redfish reset type, "SetBoot", "Locate", "SetBios", "SimpleUpdate", "Manager.Reset",
    "InsertMedia", "EjectMedia".
    """

    def __init__(
        self,
        system_id: str,
        hardware: Hardware,
        delays: Delays = DELAYS,
        quirks: Quirks = NO_QUIRKS,
    ) -> None:
        self.id = system_id
        self.hardware = hardware
        self.delays = delays
        self.quirks = quirks
        self.on_power: Hook = _ignore
        self.on_boot: Hook = _ignore
        self.parts = hardware.parts
        self.power = OFF
        self.booted = False
        self.boot = EmulatedBootOverride()
        self.booted_uri = ""
        self.media: dict[str, str] = {}
        self.ejected: dict[str, str] = {}
        self.locate = False
        self.sensors = dict(hardware.sensors)
        self.leaks = dict(hardware.leaks)
        self.supplies = dict(hardware.supplies)
        self.fans = dict(hardware.fans)
        self.part_faults: dict[str, PartFault] = {}
        self.bios = dict(hardware.bios)
        self.bios_pending: dict[str, object] = {}
        self.bios_scheduled = False
        self.bios_jobs = 0
        self.firmware = dict(hardware.firmware)
        self.firmware_staged: dict[str, str] = {}
        self.hidden: set[str] = set()
        self.untold: set[str] = set()
        self._replaced: dict[str, str] = {}
        self._looks: Counter[str] = Counter()
        self.tasks: dict[str, EmulatedTask] = {}
        self.log: deque[BmcLogLine] = deque(maxlen=MAX_LOG)
        self.received: deque[Actuation] = deque(maxlen=MAX_LOG)
        self.counts: Counter[str] = Counter()
        self.missing_keys = set(quirks.missing_keys)
        self.manager_reset_at = _FIRST_START
        self._due: dict[str, tuple[datetime, Callable[[datetime], None]]] = {}
        self._silent_until = self._deaf_until = _FIRST_START - timedelta(days=36500)
        self._spikes: dict[str, list[float]] = {}
        self._drawn = self._logged = self._numbered = 0

    # time

    def advance(self, now: datetime) -> None:
        """Let everything due until `now` happen, in order."""
        while self._due:
            name = min(self._due, key=lambda n: (self._due[n][0], n))
            at, happen = self._due[name]
            if at > now:
                return
            del self._due[name]
            happen(at)

    def next_due(self) -> datetime | None:
        """When something happens by itself next; None while nothing is under way."""
        return min((at for at, _ in self._due.values()), default=None)

    def away(self, now: datetime) -> bool:
        """The BMC answers nothing at all: it is restarting."""
        self.advance(now)
        return now < self._silent_until

    def deaf(self, now: datetime) -> bool:
        """The BMC is on the network, and its Redfish service is not up yet."""
        self.advance(now)
        return now < self._deaf_until

    # power and boot

    def start_powered(self) -> None:
        """Begin life switched on and booted from disk, with no hook called."""
        self.power, self.booted = ON, True

    def reset(self, kind: str, now: datetime) -> None:
        """A power action by its Redfish name. Raises BmcRefusalError (400) in the wrong state, unless lenient."""
        self.advance(now)
        if kind not in RESETS:
            raise BmcRefusalError(400, f"The value {kind!r} for ResetType is not in the list of acceptable values.")
        wrong = self.power == ON if kind in _RESETS_ON else self.power == OFF
        refused = wrong and not self.quirks.lenient
        self._receive(kind, now, accepted=not refused)
        if refused:
            raise BmcRefusalError(
                400, f"The request {kind} cannot be carried out while the power state is {self.power}."
            )
        if kind in _RESETS_ON:
            self._plan("power", now, self.delays.on, self._power_on)
        elif kind in _RESETS_OFF:
            self._plan(
                "power",
                now,
                self.delays.off if kind == "ForceOff" else self.delays.graceful_off,
                self._power_off,
            )
        elif kind != "Nmi":
            self._power_off(now)
            self._plan("power", now, self.delays.restart, self._power_on)

    def set_boot(self, boot: EmulatedBootOverride, now: datetime) -> None:
        """Set the boot override."""
        self._receive("SetBoot", now)
        if "forgets_boot" not in self.quirks.drives or boot.target not in _CDS:
            self.boot = boot

    def insert(self, drive: str, image: str, now: datetime) -> bool:
        """Put a medium into a virtual drive; whether it is fetched now. Raises BmcRefusalError where one is in."""
        taken = drive in self.media
        self._receive("InsertMedia", now, accepted=not taken)
        if taken:
            raise BmcRefusalError(409, f"The drive {drive} holds a medium already.")
        if "not_inserted" in self.quirks.drives:
            return False
        if "slow" in self.quirks.drives:
            self._plan(f"drive {drive}", now, self.delays.slow_medium, lambda _: self.media.update({drive: image}))
            return False
        self.media[drive] = image
        return True

    def eject(self, drive: str, now: datetime) -> None:
        """Take it out. Raises BmcRefusalError where this BMC refuses that."""
        refused = "eject_refused" in self.quirks.drives
        self._receive("EjectMedia", now, accepted=not refused)
        if refused:
            raise BmcRefusalError(400, "The medium is in use and cannot be ejected.")
        if "kept" not in self.quirks.drives and drive in self.media:
            self.ejected[drive] = self.media.pop(drive)

    def set_locate(self, lit: bool, now: datetime) -> None:
        """Light or darken the locate LED."""
        self._receive("Locate", now)
        self.locate = lit

    def set_bios(self, settings: dict[str, object], now: datetime, *, applies: bool = True) -> None:
        """Settings wait, and take effect at the next boot where they are to apply by then. Raises BmcRefusalError."""
        refusals = [refusal for name, value in sorted(settings.items()) if (refusal := self._bios_refusal(name, value))]
        self._receive("SetBios", now, accepted=not refusals)
        if refusals:
            raise BmcRefusalError(400, *refusals[0])
        self.bios_pending |= settings
        if applies and not self.bios_scheduled:
            self.schedule_bios(now)

    def schedule_bios(self, now: datetime) -> None:
        """Settings that wait are taken at the next boot. Raises BmcRefusalError where none waits, or a job has them."""
        self.advance(now)
        if not self.bios_pending or self.bios_scheduled:
            raise BmcRefusalError(400, "No job can be created now.")
        self.bios_scheduled = True
        self.bios_jobs += 1

    def _bios_refusal(self, name: str, value: object) -> tuple[str, str] | None:
        if name not in self.bios:
            return f"The property {name} is not in the list of valid properties.", "Base.1.12.PropertyUnknown"
        if type(value) is not type(self.bios[name]):
            return f"The value {value!r} for {name} is of another type.", "Base.1.12.PropertyValueTypeError"
        match self.quirks.bios.get(name):
            case "read_only":
                return f"The property {name} is a read only property.", "Base.1.12.PropertyNotWritable"
            case "locked":
                return "A setup password is set: settings cannot be changed.", "Base.1.12.InsufficientPrivilege"
            case _:
                return None

    def _apply_bios(self) -> None:
        faults = self.quirks.bios
        for name in [name for name in self.bios_pending if self.bios_scheduled and faults.get(name) != "stuck"]:
            value = self.bios_pending.pop(name)
            self.bios[name] = self.bios[name] if faults.get(name) == "ignored" else value
        self.bios_scheduled = self.bios_scheduled and bool(self.bios_pending)

    def lose_power(self, now: datetime) -> None:
        """The supply fails: server and BMC are dark until `restore_power`."""
        self.advance(now)
        if self.power == ON:
            self._power_off(now)
        self._due.clear()
        self._silent_until = datetime.max.replace(tzinfo=UTC)

    def restore_power(self, now: datetime) -> None:
        """The supply is back: the BMC starts, the server stays off."""
        self.restart_manager(now)

    # firmware

    def start_update(self, component: str, image: str, now: datetime) -> EmulatedTask:
        """Accept an update; somebody then fetches the image and calls `image_arrived`.

        Raises BmcRefusalError while another runs (503), or for a component that is not there (400).
        """
        self.advance(now)
        busy = any(task.state == "Running" for task in self.tasks.values())
        wrong = self.power == ON and component in self.quirks.needs_off
        accepted = component in self.firmware and not busy and not wrong
        self._receive("SimpleUpdate", now, accepted=accepted)
        if busy:
            raise BmcRefusalError(503, "An update is in progress; the service is temporarily unavailable.")
        if wrong:
            raise BmcRefusalError(400, f"{component} cannot be updated while the power state is {self.power}.")
        if not accepted:
            raise BmcRefusalError(400, f"The target {component!r} was not found.")
        self._numbered += 1
        task = EmulatedTask(f"{self.id}-{self._numbered}", component, image, now)
        while len(self.tasks) >= MAX_TASKS:
            del self.tasks[next(iter(self.tasks))]
        self.tasks[task.id] = task
        return task

    def image_arrived(self, task_id: str, body: bytes | None, now: datetime) -> None:
        """The fetched image, None where fetching failed. Writing begins."""
        self.advance(now)
        if task_id.startswith(_DRIVE):
            if body is None:
                self.media.pop(task_id.removeprefix(_DRIVE), None)  # it could not be read
            return
        task = self.tasks.get(task_id)
        if task is None or task.state != "Running":
            return
        image = read_image(body)
        if image is None or image.component != task.component:
            why = "could not be fetched" if body is None else "is not for this component"
            self._fail(task, f"The image {task.image} {why}.")
            return
        task.version, task.message = image.version, "The image is being written."
        self._plan(f"task {task.id}", now, self.delays.write, lambda at: self._written(task, at))

    def shown_version(self, component: str) -> str:
        """The version that the firmware inventory shows now; a component that flaps shows another at each look."""
        self._looks[component] += 1
        before = self._replaced.get(component) if component in self.quirks.flaps else None
        return before if before is not None and self._looks[component] % 2 else self.firmware[component]

    # the BMC itself

    def ac_cycle(self, now: datetime) -> None:
        """Mains off and on. Raises BmcRefusalError (400) while the server is on."""
        refused = self.power == ON
        self._receive("AcCycle", now, accepted=not refused)
        if refused:
            raise BmcRefusalError(400, "The chassis power state has to be off for this request.")
        self.lose_mains(now)

    def lose_mains(self, now: datetime, dark: timedelta = timedelta()) -> None:
        """All power is gone for a while, the BMC's too, and comes back; a server that ran is off afterwards."""
        self.advance(now)
        if self.power == ON:
            self._power_off(now)
        self._run_staged(after_mains=True)
        self.restart_manager(now, dark)

    def reset_manager(self, now: datetime) -> None:
        """Restart the BMC on request."""
        self._receive("Manager.Reset", now)
        self.restart_manager(now)

    def restart_manager(self, now: datetime, dark: timedelta = timedelta()) -> None:
        """The BMC is dark for so long, away, then deaf; it forgets its tasks, and shows all its keys again."""
        self.advance(now)
        self._silent_until = now + dark + self._draw(self.delays.away)
        self._deaf_until = self._silent_until + self._draw(self.delays.deaf)
        self.manager_reset_at = self._silent_until.replace(microsecond=0)
        self.missing_keys.clear()
        self.hidden.clear()
        self.tasks.clear()
        self.media.clear()
        for name in [name for name in self._due if name.startswith(("task ", _DRIVE))]:
            del self._due[name]

    def hang(self) -> None:
        """The BMC answers nothing any more until it is restarted from inside the server, or loses power."""
        self._silent_until = datetime.max.replace(tzinfo=UTC)

    def write_log(self, severity: str, message: str, now: datetime) -> None:
        """Add a line to the system event log."""
        self._logged += 1
        self.log.append(BmcLogLine(self._logged, now, severity, message))

    # what is wrong with it

    def sicken(self, name: str, part_fault: PartFault = PartFault()) -> None:  # noqa: B008 - frozen
        """A fan, a power supply, the part in a slot or the "system" is unwell; the "cover" is opened.

        A fan that is critical stands still. Raises KeyError where nothing has that name.
        """
        if name in self.fans:
            self.fans[name] = part_fault.health
            if part_fault.health == "Critical" and f"{name}_rpm" in self.sensors:
                self.sensors[f"{name}_rpm"] = 0.0
        elif name in self.supplies:
            self.supplies[name] = part_fault.health
        elif name in ("system", "cover") or any(part.slot == name for part in self.parts):
            self.part_faults[name] = part_fault
        else:
            raise KeyError(f"{self.id} has no fan, supply or part {name!r}")

    def heal(self, name: str) -> None:
        """End a part's fault: it is well again, or was replaced."""
        self.part_faults.pop(name, None)
        if name in self.supplies:
            self.supplies[name] = "OK"
        if name in self.fans:
            self.fans[name] = "OK"
            if f"{name}_rpm" in self.sensors:
                self.sensors[f"{name}_rpm"] = self.hardware.sensors[f"{name}_rpm"]

    # sensors

    def spike(self, sensor: str, *values: float) -> None:
        """The next readings of a sensor, one poll each, before it tells the truth again."""
        self._spikes.setdefault(sensor, []).extend(values)

    def read_sensor(self, sensor: str, now: datetime) -> float:
        """One reading; raises KeyError where there is no such sensor."""
        self.advance(now)
        waiting = self._spikes.get(sensor)
        return waiting.pop(0) if waiting else self.sensors[sensor]

    # what happens by itself

    def _power_on(self, at: datetime) -> None:
        if self.power == ON:
            return
        self.power = ON
        self._run_staged(after_mains=False)
        self.write_log("OK", "The server was powered on.", at)
        self._plan("boot", at, self.delays.boot, self._boots)
        self.on_power(self.id, ON, at)

    def _run_staged(self, *, after_mains: bool) -> None:
        for component in [c for c in self.firmware_staged if after_mains or c not in self.quirks.needs_ac]:
            self._now_runs(component, self.firmware_staged.pop(component))

    def _now_runs(self, component: str, version: str) -> None:
        if component in self.quirks.flaps:
            self._replaced[component] = self.firmware[component]
        if component in self.quirks.hides:
            self.hidden.add(component)
        self.firmware[component] = version
        if component == "BIOS":
            self.bios |= self.hardware.bios_brings.get(version, {})

    def _power_off(self, at: datetime) -> None:
        if self.power == OFF:
            return
        self.power, self.booted = OFF, False
        self._due.pop("boot", None)
        for task in self.tasks.values():
            if task.state == "Running" and task.component != "BMC":
                self._fail(task, "The update was interrupted: the server lost power.")
        self.write_log("OK", "The server was powered off.", at)
        self.on_power(self.id, OFF, at)

    def _boots(self, at: datetime) -> None:
        source = self.boot.target if self.boot.enabled in {"Once", "Continuous"} else "Hdd"
        if source in _CDS and not self.media:
            source = "Hdd"
        self.booted_uri = self.boot.uri if source == "UefiHttp" else ""
        if source in _CDS:
            self.booted_uri = next(iter(self.media.values()))
        if self.boot.enabled == "Once":
            self.boot = EmulatedBootOverride()
        self._apply_bios()
        self.booted = True
        self.on_boot(self.id, source, at)

    def _written(self, task: EmulatedTask, at: datetime) -> None:
        if task.state != "Running":
            return
        if task.component in self.quirks.fails_on:
            self._fail(task, f"The image for {task.component} failed verification.")
            return
        task.state, task.message = "Completed", "The update was successful."
        self.write_log("OK", f"{task.component} was updated to {task.version}.", at)
        if self.quirks.forgets_tasks:
            del self.tasks[task.id]
        if task.component in self.quirks.lies_about:
            return
        if task.component in self.hardware.staged:
            self.firmware_staged[task.component] = task.version
        else:
            self._now_runs(task.component, task.version)
        if task.component == "BMC":
            self.restart_manager(at)

    def _fail(self, task: EmulatedTask, message: str) -> None:
        task.state, task.status, task.message = "Exception", "Critical", message
        self._due.pop(f"task {task.id}", None)

    def _receive(self, kind: str, now: datetime, *, accepted: bool = True) -> None:
        self.advance(now)
        self.counts[kind] += 1
        self.received.append(Actuation(now, kind, accepted))

    def _plan(self, name: str, now: datetime, span: tuple[float, float], happen: Callable[[datetime], None]) -> None:
        """Have something happen after a drawn delay; it takes the place of what was planned under that name."""
        self._due[name] = (now + self._draw(span), happen)

    def _draw(self, span: tuple[float, float]) -> timedelta:
        self._drawn += 1
        digest = blake2s(f"{self.delays.seed}/{self.id}/{self.hardware.serial}/{self._drawn}".encode()).digest()
        fraction = int.from_bytes(digest[:6], "big") / (1 << 48)
        return timedelta(seconds=(span[0] + (span[1] - span[0]) * fraction) * self.delays.scale)


def read_image(body: bytes | None) -> Image | None:
    """Read an update file; None for a broken file."""
    try:
        return msgspec.json.decode(body, type=Image) if body is not None else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def make_image(component: str, version: str) -> bytes:
    """An update file that emulated BMCs accept."""
    return msgspec.json.encode(Image(component, version))


def gpu_server(serial: str, gpus: int = 8) -> Hardware:
    """A server like those of an H100 fleet, its parts' serial numbers derived from its own."""
    parts = [
        *(Part(f"{serial}-GPU{n}", "gpu", "NVIDIA H100 80GB HBM3", f"gpu{n}", "96.00.89") for n in range(gpus)),
        *(Part(f"{serial}-CPU{n}", "cpu", "Xeon Platinum 8480C", f"cpu{n}") for n in range(2)),
        *(Part(f"{serial}-MEM{n}", "memory", "DDR5 64 GB", f"memory{n}") for n in range(32)),
        *(Part(f"{serial}-NVME{n}", "drive", "NVMe 7.68 TB", f"drive{n}", "GDC7") for n in range(8)),
        *(Part(f"{serial}-NIC{n}", "nic", "ConnectX-7", f"nic{n}", "28.39.2048") for n in range(gpus)),
    ]
    sensors = {f"gpu{n}_temp_c": 38.0 + n for n in range(gpus)}
    sensors |= {"inlet_temp_c": 24.0, "total_power_w": 1900.0} | {f"fan{n}_rpm": 8200.0 for n in range(1, 7)}
    limits = {f"gpu{n}_temp_c": 92.0 for n in range(gpus)}
    return Hardware(serial, parts=tuple(parts), sensors=sensors, limits_c=limits)


def sku_of_server(gpus: int = 8) -> dict[str, object]:
    """The SKU of such a server as an operator writes it: kinds of part, models, and the host's memory."""
    return {
        "gpus": gpus,
        "gpu_model": "H100",
        "parts": {"cpu": 2, "memory": 32, "drive": 8, "nic": gpus},
        "models": {"cpu": "8480", "memory": "64 GB", "drive": "7.68 TB", "nic": "ConnectX-7"},
        "memory_gib": 2048,
        "temperature_limit_c": 90,
    }


MEMORY_KIB = 2030 * 2**20
"""Memory that the kernel of such a server reports: it keeps some of its 2,048 GiB for itself."""


def _ignore(_system: str, _state: str, _moment: datetime) -> None:
    pass
