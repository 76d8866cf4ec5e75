"""Redfish JSON → our nouns: DMTF's and vendors' samples as sushy ships them, and hostile input."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.core.state.firmware_versions import same_component
from hostler.core.state.model import Part
from hostler.drivers.redfish import wire, wire_event_log, wire_firmware, wire_parts, wire_sensors
from hostler.drivers.redfish.part_status import intrusion, part_facts
from hostler.drivers.redfish.tolerant_json import (
    MAX_TEXT,
    WireError,
    document,
    inlined,
    links,
    local_path,
    number,
    objects,
    strings,
    text,
)
from hostler.drivers.redfish.wire_event_log import LogEntry
from hostler.drivers.redfish.wire_firmware import FirmwareComponent
from hostler.drivers.redfish.wire_sensors import SensorValue

SAMPLES = files("sushy") / "tests" / "unit" / "json_samples"


def sample(name: str) -> bytes:
    """A recorded answer out of sushy's own tests; most are DMTF's mock-ups, some are vendors'."""
    return (SAMPLES / f"{name}.json").read_bytes()


def raw(**doc: Any) -> bytes:
    return json.dumps(doc).encode()


# recorded answers


def test_a_service_root() -> None:
    root = wire.service_root(sample("root"))
    assert (root.systems, root.managers, root.update) == (
        "/redfish/v1/Systems",
        "/redfish/v1/Managers",
        "/redfish/v1/UpdateService",
    )
    assert root.version


def test_a_system() -> None:
    system = wire.system(sample("system"), "/redfish/v1/Systems/437XR1138R2")
    assert (system.id, system.serial, system.power, system.model) == ("437XR1138R2", "437XR1138R2", "on", "3500")
    assert system.identity == "437XR1138R2"
    assert system.reset_target == "/redfish/v1/Systems/437XR1138R2/Actions/ComputerSystem.Reset"
    assert "ForceOff" in system.resets
    assert "Pxe" in system.boot.targets
    assert (system.led, system.locate) == ("IndicatorLED", False)
    assert system.managers == ("/redfish/v1/Managers/BMC",)
    assert set(system.collections) >= {"Processors", "Memory", "EthernetInterfaces", "LogServices"}


def test_a_manager() -> None:
    manager = wire.manager(sample("manager"), "/redfish/v1/Managers/BMC")
    assert manager.reset_target == "/redfish/v1/Managers/BMC/Actions/Manager.Reset"
    assert manager.firmware == "1.00"


def test_processors_and_drives() -> None:
    cpu = wire_parts.processor_part(document(sample("processor")))
    assert cpu, "it shows no serial number, and is there"
    assert (cpu.serial, cpu.kind, cpu.slot) == ("", "cpu", "CPU 1")
    drive = wire_parts.drive_part(document(sample("drive")))
    assert drive
    assert (drive.kind, bool(drive.serial), drive.firmware) == ("drive", True, "100A")
    adapter = wire_parts.adapter_part(document(sample("network_adapter")))
    assert adapter
    assert adapter.kind == "nic"


def test_an_ethernet_interface_is_known_by_its_permanent_address() -> None:
    part = wire_parts.ethernet_part(document(sample("ethernet_interfaces")))
    assert part == Part("12:44:6a:3b:04:11", "nic_port", slot="1")


def test_thermal_and_power() -> None:
    thermal = wire_sensors.facts(wire_sensors.thermal(document(sample("thermal"))))
    assert {name.rsplit("_", 1)[1] for name in thermal} == {"c", "rpm", "health"}
    assert any(name.endswith("_limit_c") for name in thermal)
    power = wire_sensors.facts(wire_sensors.power(document(sample("power"))))
    assert any(name.endswith("_w") for name in power)
    assert any(name.endswith("_health") for name in power)


def test_a_task() -> None:
    task = wire.task(sample("task"), "/t")
    assert (task.state, task.path) == ("done", "/redfish/v1/TaskService/Tasks/545")


@pytest.mark.parametrize("name", ["error", "error_single_ext_info", "session_error", "credentials_required_error"])
def test_an_error_body_is_told_in_the_bmcs_words(name: str) -> None:
    said = wire.error_text(sample(name))
    assert len(said) > 20
    assert "{" not in said


ALL_SAMPLES = sorted(file.name for file in SAMPLES.iterdir() if file.name.endswith(".json"))


@pytest.mark.parametrize("name", ALL_SAMPLES)
def test_every_sample_passes_through_every_reader(name: str) -> None:
    body = (SAMPLES / name).read_bytes()
    for read in RAW_READERS:
        _read_or_say(read, body)


def test_a_part_is_as_well_as_its_worst_word() -> None:
    """Mutants: the rollup is not read; a prediction of failure is not; a word that nobody knows hides a grave one."""
    status = {"Health": "OK", "HealthRollup": "Warning", "State": "Enabled"}
    doc: dict[str, Any] = {"Id": "3", "SerialNumber": "D1", "Status": status}
    assert part_facts(doc, "drive") == {"health:drive:3": "warning", "serial:drive:3": "D1"}
    assert part_facts(doc | {"FailurePredicted": True}, "drive")["health:drive:3"] == "critical"
    said = {
        "Health": "Critical",
        "HealthRollup": "Odd",
        "Conditions": [{"MessageId": "X.1.0.Y", "Message": "broken"}],
    }
    gpu: dict[str, Any] = {"Id": "GPU_1", "ProcessorType": "GPU", "Status": said}
    assert part_facts(gpu, "processor") == {"health:gpu:GPU_1": "critical", "says:gpu:GPU_1": "X.1.0.Y: broken"}
    assert part_facts(doc | {"Status": {"State": "Absent", "Health": "OK"}}, "drive") == {}
    assert part_facts(doc | {"Status": {"State": "Enabled"}}, "drive") == {}, "nothing said is not well"


def test_a_system_is_as_well_as_what_it_sums_up() -> None:
    shown: dict[str, Any] = {"Status": {"Health": "OK"}, "MemorySummary": {"Status": {"HealthRollup": "Critical"}}}
    assert wire.system(raw(**shown), "/s").health == "critical"
    assert wire.system(raw(), "/s").health == ""


# single rules


@pytest.mark.parametrize(
    ("shown", "power"),
    [
        ("On", "on"),
        ("Off", "off"),
        ("PoweringOff", "powering_off"),
        ("PoweringOn", "powering_on"),
        (None, ""),
        ("Unknown", ""),
        (0, ""),
        (False, ""),
        ([], ""),
    ],
)
def test_a_power_state_that_is_not_known_is_not_off(shown: object, power: str) -> None:
    assert wire.power_state({"PowerState": shown}) == power


def test_versions_that_run_and_versions_that_wait() -> None:
    docs: list[dict[str, object]] = [
        {"Id": "BIOS", "Name": "BIOS", "Version": "1", "Status": {"State": "Enabled"}},
        {"Id": "BIOS_next", "Name": "BIOS", "Version": "2", "Status": {"State": "StandbySpare"}},
        {"Id": "GPU0", "Version": "", "Status": {"State": "Enabled"}},
        {"Id": "GPU1", "Version": "7", "Status": {"State": "Absent"}},
        {"Id": "BMC", "Version": "3", "Status": {"State": "Updating"}},
    ]
    found = [component for doc in docs if (component := wire_firmware.component(doc))]
    assert wire_firmware.versions(found) == {"BIOS": "1", "BMC": "3"}
    assert [(c.name, c.version) for c in found if c.staged] == [("BIOS", "2")]
    assert [c.name for c in found if c.updating] == ["BMC"]


def test_firmware_of_another_system_is_left_out() -> None:
    mine = wire.System("/redfish/v1/Systems/a", id="a")
    listed = [
        FirmwareComponent("a.BIOS", "1", "/x", systems=("/redfish/v1/Systems/a",)),
        FirmwareComponent("b.BIOS", "2", "/y", systems=("/redfish/v1/Systems/b/",)),
        FirmwareComponent("CPLD", "3", "/z"),
    ]
    assert wire_firmware.versions(wire_firmware.components_of(mine, listed, ("/redfish/v1/Systems/b",))) == {
        "BIOS": "1",
        "CPLD": "3",
    }


def test_component_names_are_compared_without_case_and_separators() -> None:
    assert same_component("HGX_FW_GPU_0", "hgx-fw-gpu-0")
    assert not same_component("GPU0", "GPU1")


def test_a_log_is_read_on_from_its_cursor_and_from_the_start_once_cleared() -> None:
    entries = [LogEntry(str(n), f"2026-01-01T00:00:{n:02}Z", "ok", f"line {n}") for n in (10, 9, 8)]
    new, cursor = wire_event_log.after(entries, "")
    assert [entry.id for entry in new] == ["8", "9", "10"]
    assert wire_event_log.after(entries, cursor) == ((), cursor)
    more = [LogEntry("11", "1970-01-01T00:00:05Z", "critical", "after a reset of the clock"), *entries]
    new, cursor = wire_event_log.after(more, cursor)
    assert [entry.id for entry in new] == ["11"]
    cleared = [LogEntry("1", "2026-02-01T00:00:00Z", "ok", "log cleared")]
    assert wire_event_log.after(cleared, cursor)[0] == tuple(cleared)
    assert wire_event_log.after([], cursor) == ((), cursor)
    reused = [LogEntry("11", "2026-03-01T00:00:00Z", "critical", "the eleventh since the clear")]
    assert wire_event_log.after(reused, cursor)[0] == tuple(reused), "mutant: a cursor is an id alone"


@pytest.mark.parametrize(
    ("state", "health", "ours"),
    [
        ("Completed", "OK", "done"),
        ("Completed", "Critical", "failed"),
        ("Exception", "", "failed"),
        ("Running", "OK", "running"),
        ("Melted", "", ""),
        (None, None, ""),
    ],
)
def test_a_tasks_own_account(state: object, health: object, ours: str) -> None:
    assert wire.task(raw(TaskState=state, TaskStatus=health), "/t").state == ours


def test_a_sensor_keeps_its_unit_and_brings_its_limit() -> None:
    doc: dict[str, object] = {
        "Name": "GPU 0 Temp",
        "Reading": 61.5,
        "ReadingUnits": "Cel",
        "Thresholds": {"UpperCritical": {"Reading": 92}},
    }
    assert wire_sensors.sensor(doc) == (SensorValue("gpu_0_temp_c", 61.5), SensorValue("gpu_0_temp_limit_c", 92.0))
    assert wire_sensors.sensor({"Name": "x", "Reading": None}) == ()
    assert wire_sensors.sensor({"Name": "x", "Reading": True}) == ()
    assert wire_sensors.sensor({"Name": "x", "Reading": 1e300}) == ()
    assert wire_sensors.leak_detector({"Id": "Leak_Manifold", "DetectorState": "Critical"}) == SensorValue(
        "leak_manifold", "critical"
    )


def test_a_moment_without_a_zone_is_none() -> None:
    assert wire.moment("2026-01-01T00:00:00Z") == datetime(2026, 1, 1, tzinfo=UTC)
    assert wire.moment("2026-01-01T00:00:00") is None
    assert wire.moment("yesterday") is None


# links


@pytest.mark.parametrize("good", ["/redfish/v1/Systems/1", "https://b:9/redfish/v1/x?$skip=2", "HTTPS://B:9/x"])
def test_links_on_the_same_host_are_paths(good: str) -> None:
    assert local_path(good, "https://b:9").startswith("/")


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "//evil/x",
        "https://evil/x",
        "http://b:9/x",
        "https://b:90/x",
        "https://u@b:9/x",
        "https://b:9@evil/x",
        "/\\evil",
        "\\\\evil",
        "x",
        "/a b",
        "/a\r\nHost: evil",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://b:9//evil",
        "https://[::1/x",
        "/é",
        "/" + "a" * 5000,
    ],
)
def test_links_anywhere_else_are_not_followed(bad: str) -> None:
    with pytest.raises(WireError):
        local_path(bad, "https://b:9")


@given(st.text(max_size=60) | st.from_regex(r"(https?:)?/?/?[a-z@:.\\/%?#]{0,30}", fullmatch=True))
def test_no_link_leaves_the_host(reference: str) -> None:
    """An independent URL parser reads every accepted link, put behind the origin, as the same host."""
    from yarl import URL  # noqa: PLC0415

    try:
        path = local_path(reference, "https://bmc.example:8443")
    except WireError:
        return
    url = URL("https://bmc.example:8443" + path, encoded=True)
    assert (url.scheme, url.host, url.port, url.user) == ("https", "bmc.example", 8443, None)


# hostile input

Reader = Callable[[bytes], object]


def _doc(read: Callable[[dict[str, object]], object]) -> Reader:
    return lambda body: read(document(body))


RAW_READERS: tuple[Reader, ...] = (
    wire.service_root,
    wire.members,
    lambda body: wire.system(body, "/s"),
    lambda body: wire.manager(body, "/m"),
    wire_firmware.update_service,
    lambda body: wire.task(body, "/t"),
    wire.error_text,
    wire.reset_types,
    *(
        _doc(read)
        for read in (
            wire.power_state,
            wire.boot_of,
            wire_parts.carried_part,
            wire_parts.chassis_part,
            wire_parts.device_part,
            intrusion,
            wire_parts.processor_part,
            wire_parts.memory_part,
            wire_parts.drive_part,
            wire_parts.adapter_part,
            wire_parts.ethernet_part,
            wire_firmware.component,
            wire_sensors.thermal,
            wire_sensors.power,
            wire_sensors.sensor,
            wire_sensors.leak_detector,
            wire_event_log.log_entry,
            wire_parts.slot_of,
            wire_sensors.fan,
            wire_sensors.supply,
            lambda doc: wire_sensors.redundancy(doc, "FanRedundancy", "cooling"),
            lambda doc: inlined(doc, "Fans"),
            partial(part_facts, kind="processor"),
            partial(part_facts, kind="drive"),
            lambda doc: wire.moment(text(doc, "LastResetTime")),
        )
    ),
)

KEYS = st.sampled_from(
    [
        *("@odata.id", "@odata.etag", "@Message.ExtendedInfo", "#ComputerSystem.Reset", "#Manager.Reset", "Actions"),
        *("Boot", "BootSourceOverrideTarget", "Chassis", "Controllers", "Created", "DetectorState", "Entries", "error"),
        *(
            "ExpandQuery",
            "FanRedundancy",
            "Fans",
            "Id",
            "IndicatorLED",
            "LastResetTime",
            "Links",
            "LocationIndicatorActive",
            "Members",
        ),
        *("LogServices", "MACAddress", "ManagedBy", "Members@odata.nextLink", "Message", "MessageId", "Messages"),
        *("Name", "PowerControl", "PowerState", "PowerSupplies", "ProcessorType", "ProtocolFeaturesSupported"),
        *("Reading", "ReadingCelsius", "ReadingUnits", "RelatedItem", "ResetType@Redfish.AllowableValues", "State"),
        *("SerialNumber", "Status", "Systems", "target", "TaskState", "Temperatures", "Thresholds", "UpperCritical"),
        *(
            "AllowableValues",
            "IntrusionSensor",
            "Parameters",
            "PhysicalSecurity",
            "SettingsObject",
            "@Redfish.ActionInfo",
            "@Redfish.Settings",
            "Version",
            "Voltages",
            "FanRedundancy",
            "Health",
            "HealthRollup",
            "Conditions",
            "FailurePredicted",
            "Members@odata.count",
        ),
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["On", "Cel", "Absent", "GPU", "Completed", "2026-01-01T00:00:00Z", "/redfish/v1/x", "9" * 400])
    | st.integers(min_value=10**30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=6), inner, max_size=6),
    max_leaves=25,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=10).map(lambda doc: json.dumps(doc).encode())


def _read_or_say(read: Reader, body: bytes) -> object:
    try:
        return read(body)
    except WireError:
        return None


@given(DOCUMENTS)
def test_no_document_crashes_a_reader(body: bytes) -> None:
    """Mutant: `number` does not test for finiteness, or `text` for being a string."""
    for read in RAW_READERS:
        _read_or_say(read, body)


@given(st.binary(max_size=200))
def test_no_bytes_crash_a_reader(body: bytes) -> None:
    for read in RAW_READERS:
        _read_or_say(read, body)


@pytest.mark.parametrize("body", [b"[" * 200_000, b'{"a":' * 200_000, b'{"Members":' + b"[" * 5000, b"1e999", b"\xff"])
def test_deep_and_broken_bodies_are_unreadable(body: bytes) -> None:
    with pytest.raises(WireError, match="BMC's"):
        wire.service_root(body)


@given(DOCUMENTS)
def test_what_is_read_is_clean(body: bytes) -> None:
    """Texts are short and printable, numbers finite and lists bounded, whatever the BMC sent."""
    try:
        system = wire.system(body, "/s")
        doc = document(body)
    except WireError:
        return
    for value in (system.id, system.serial, system.model, system.power, system.etag, *system.resets):
        assert len(value) <= MAX_TEXT
        assert value.isprintable()
    for reading in (*wire_sensors.thermal(doc), *wire_sensors.power(doc), *wire_sensors.sensor(doc)):
        assert reading.name
        assert not isinstance(reading.value, float) or abs(reading.value) < 1e15


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=5), st.text(max_size=5))
def test_reading_functions_take_anything(doc: dict[str, object], key: str) -> None:
    assert text(doc, key) is not None
    assert number(doc, key) is None or isinstance(number(doc, key), float)
    assert isinstance(strings(doc, key), tuple)
    assert isinstance(links(doc, key), tuple)
    assert all(isinstance(item, dict) for item in objects(doc, key))


def test_supplies_of_one_name_are_told_apart_and_a_dead_one_is_not_hidden() -> None:
    """As one vendor's older Power lists them. Mutant: of two readings with one name the later counts."""
    items: list[dict[str, object]] = [
        {"MemberId": str(n), "Name": "HpeServerPowerSupply", "Status": {"Health": word}, "SerialNumber": f"P{n}"}
        for n, word in enumerate(("Critical", "OK"))
    ]
    words = {reading.name: reading.value for reading in wire_sensors.power({"PowerSupplies": items})}
    assert words == {"hpeserverpowersupply_0_health": "critical", "hpeserverpowersupply_1_health": "ok"}
    found = [wire_parts.supply_part(doc) for doc in wire_sensors.named_apart(items)]
    assert [(part.slot, part.serial) for part in found if part] == [
        ("HpeServerPowerSupply 0", "P0"),
        ("HpeServerPowerSupply 1", "P1"),
    ]
