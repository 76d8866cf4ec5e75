"""A real Ironic with sushy-tools as its BMCs, each a process of its own on loopback, from a venv that is made once.

Nothing of it is a dependency of the project: `pip install ironic sushy-tools` into a folder of the user's cache.
"""

import asyncio
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hostler.core.state.model import Outcome
from hostler.ports import BusyTargetError
from tests.contract.pypi_programs import MissingError, installed
from tests.end_to_end.processes import free_port
from tests.tied_processes import tied

PACKAGES = ("ironic==39.0.0", "sushy-tools==2.2.0")
"""Releases that were tried; Ironic 39 is of 2026."""
START_S = 60.0
DISK_SERIAL = "HOSTLER-LOOP"
NICS = [{"mac": "52:54:00:12:34:01", "ip": "127.0.0.1"}]
VERSION = {"X-OpenStack-Ironic-API-Version": "1.81"}
CONFIG = """[DEFAULT]
{auth}
rpc_transport=none
host=localhost
log_file={run}/ironic.log
state_path={run}
enabled_hardware_types=redfish,fake-hardware
enabled_bios_interfaces=no-bios,fake
enabled_boot_interfaces=ipxe,fake
enabled_console_interfaces=no-console
enabled_deploy_interfaces=ramdisk,direct,fake
enabled_firmware_interfaces=no-firmware
enabled_inspect_interfaces=redfish,fake
enabled_management_interfaces=redfish,fake
enabled_network_interfaces=noop
enabled_power_interfaces=redfish,fake
enabled_raid_interfaces=no-raid,fake
enabled_rescue_interfaces=no-rescue
enabled_storage_interfaces=noop
enabled_vendor_interfaces=no-vendor
[api]
host_ip={host}
port={api}
api_workers=1
[database]
connection=sqlite:///{run}/ironic.sqlite
[conductor]
automated_clean=false
deploy_callback_timeout=6
clean_callback_timeout=6
check_provision_state_interval=1
[pxe]
tftp_root={run}/tftp
[deploy]
http_root={run}/http
[oslo_concurrency]
lock_path={run}/lock
[service_catalog]
auth_type=none
endpoint_override=http://{host}:{api}
[glance]
auth_type=none
"""


def programs() -> Path:
    """The folder of its programs, installed where they are not yet. Raises MissingError."""
    return installed("ironic-39", PACKAGES)


def hashed(password: str) -> str:
    """The password as Ironic's own file of users has it (bcrypt)."""
    text = "import bcrypt, sys; print(bcrypt.hashpw(sys.argv[1].encode(), bcrypt.gensalt()).decode())"
    argv = (f"{programs()}/python", "-c", text, password)
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=START_S).stdout.strip()


@contextmanager
def ironic_or_skip(folder: Path, names: tuple[str, ...]) -> Iterator["RealIronic"]:
    """An Ironic with machines of these names; a test that asks for it is skipped where none can be had."""
    try:
        with real_ironic(folder, names) as there:
            yield there
    except MissingError as missing:
        pytest.skip(f"Ironic is not here and cannot be installed: {missing}")


class RealIronic:
    """An Ironic and its BMC. `systems` are the machines behind that BMC, by name; `http` has what it serves to them."""

    def __init__(self, url: str, systems: dict[str, str], entry: Callable[[], dict[str, str]], http: Path) -> None:
        self.url, self.bmc = url, f"http://127.0.0.1:{free_port()}"
        self.systems = systems
        self.entry = entry
        self.http = http
        self.argv: dict[str, tuple[str, ...]] = {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, program: str) -> None:
        """Start "bmc" or "ironic"; what it prints goes to a file of its folder."""
        with (self.http.parent.parent / "out").open("ab") as out:
            argv = tied(*self.argv[program])
            self._running[program] = subprocess.Popen(argv, stdout=out, stderr=out, start_new_session=True)

    def kill(self, program: str) -> None:
        """Kill it, as a power loss does: its graceful end takes 15 s and more."""
        child = self._running.pop(program)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait(15)

    def close(self) -> None:
        """Kill all that runs."""
        for program in list(self._running):
            self.kill(program)

    def until_up(self) -> None:
        """Wait until both answer."""
        end = time.monotonic() + START_S
        while True:
            try:
                if self.call("GET", "/v1/drivers")["drivers"] and self.call("GET", "/redfish/v1/Systems", at=self.bmc):
                    return
            except (urllib.error.URLError, OSError):
                pass
            assert time.monotonic() < end, (self.http.parent.parent / "out").read_text()[-2000:]
            time.sleep(0.2)

    def call(self, method: str, path: str, body: Any = None, at: str = "") -> Any:
        data = json.dumps(body).encode() if body is not None else None
        headers = VERSION | {"Content-Type": "application/json"} | (self.entry() if not at else {})
        asked = urllib.request.Request(f"{at or self.url}{path}", data, headers, method=method)  # noqa: S310 - loopback
        with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310 - loopback
            raw = answer.read()
        return json.loads(raw) if raw else None

    def enrol_fake(self, name: str, **interfaces: str) -> None:
        """Make a node known whose interfaces are Ironic's own fakes, but for those named: its states are Ironic's."""
        place = f"/redfish/v1/Systems/{self.systems[name]}"
        info = {"redfish_address": self.bmc, "redfish_system_id": place}
        info |= {"deploy_kernel": "http://127.0.0.1:9/kernel", "deploy_ramdisk": "http://127.0.0.1:9/ramdisk"}
        fakes = {f"{kind}_interface": "fake" for kind in ("bios", "boot", "deploy", "inspect", "management", "power")}
        fakes |= {"network_interface": "noop", "raid_interface": "fake"}
        fakes |= {f"{kind}_interface": value for kind, value in interfaces.items()}
        self.call("POST", "/v1/nodes", {"name": name, "driver": "fake-hardware", "driver_info": info, **fakes})

    def enrol(self, name: str, bmc: str = "", system: str = "") -> None:
        """Make a node known to Ironic, as its operators do."""
        place = f"/redfish/v1/Systems/{self.systems[system or name]}"
        info = {"redfish_address": bmc or self.bmc, "redfish_system_id": place}
        info |= {"redfish_username": "admin", "redfish_password": "password"}
        self.call("POST", "/v1/nodes", {"name": name, "driver": "redfish", "driver_info": info})

    def enrol_for_deploy(self, name: str, kernel: str, ramdisk: str) -> None:
        """Make a node known that boots this ramdisk by iPXE, with the real `direct` deploy and the BMC's first NIC."""
        self.enrol(name)
        wanted = {"/driver_info/deploy_kernel": kernel, "/driver_info/deploy_ramdisk": ramdisk}
        wanted |= {"/deploy_interface": "direct", "/boot_interface": "ipxe", "/inspect_interface": "redfish"}
        wanted |= {"/properties/capabilities": "boot_mode:bios", "/properties/cpu_arch": "x86_64"}
        hint = {"serial": DISK_SERIAL}
        said: dict[str, object] = {**wanted, "/properties/root_device": hint}
        changes = [{"op": "add", "path": path, "value": value} for path, value in said.items()]
        self.call("PATCH", f"/v1/nodes/{name}", changes)
        self.call("POST", "/v1/ports", {"node_uuid": self.state(name)["uuid"], "address": NICS[0]["mac"]})

    def forget(self, name: str) -> None:
        """Take a node out, whatever state it is in; a lock that is held is waited for."""
        self.call("PUT", f"/v1/nodes/{name}/maintenance", {"reason": "the test is over"})
        end = time.monotonic() + START_S
        while True:
            try:
                self.call("DELETE", f"/v1/nodes/{name}")
            except urllib.error.HTTPError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.5)
            else:
                return

    def address(self, name: str) -> str:
        """The address of the machine's BMC as Hostler's binding has it."""
        return f"{self.bmc}/redfish/v1/Systems/{self.systems[name]}"

    def shown(self, name: str) -> Any:
        """Read the machine's BMC itself."""
        return self.call("GET", f"/redfish/v1/Systems/{self.systems[name]}", at=self.bmc)

    def press(self, name: str, kind: str) -> None:
        """Reset the machine by its BMC itself, as it would show its own power going."""
        action = f"/redfish/v1/Systems/{self.systems[name]}/Actions/ComputerSystem.Reset"
        self.call("POST", action, {"ResetType": kind}, at=self.bmc)

    def state(self, name: str) -> Any:
        return self.call("GET", f"/v1/nodes/{name}")

    def until(self, name: str, **wanted: Any) -> Any:
        """Wait until the node's record has these."""
        end = time.monotonic() + START_S
        while any((found := self.state(name))[key] != value for key, value in wanted.items()):
            assert time.monotonic() < end, found
            time.sleep(0.1)
        return found


def _schema(place: Path) -> Path:
    """An empty database of this release, made once for all tests: its 60 migrations take ten seconds."""
    made = place.parent / "empty.sqlite"
    with (place.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "ironic.conf").write_text(f"[database]\nconnection=sqlite:///{folder}/new.sqlite\n")
                argv = (f"{place}/ironic-dbsync", "--config-file", f"{folder}/ironic.conf", "create_schema")
                subprocess.run(argv, check=True, capture_output=True, timeout=START_S)
                shutil.copy(f"{folder}/new.sqlite", made.with_suffix(".part"))
            made.with_suffix(".part").rename(made)
    return made


def system_ids(names: tuple[str, ...]) -> dict[str, str]:
    """The UUIDs of the machines of these names, as their BMC has them."""
    return {name: f"27946b59-9e44-4fa7-8e91-{number:012d}" for number, name in enumerate(names, 1)}


@contextmanager
def real_ironic(
    folder: Path,
    names: tuple[str, ...],
    entry: Callable[[], dict[str, str]] = dict,
    host: str = "127.0.0.1",
    **auth: str,
) -> Iterator[RealIronic]:
    """Both processes while the block runs; `entry` are the headers by which the test enters. Raises MissingError.

    `host` is the address of Ironic's API. `auth`: `strategy`, more `sections` of its configuration, more of the BMC's.
    """
    place, run = programs(), folder / "run"
    for part in ("tftp", "http", "lock"):
        (run / part).mkdir(parents=True)
    systems = system_ids(names)
    there = RealIronic(f"http://{host}:{free_port()}", systems, entry, run / "http")
    strategy = auth.get("strategy", "noauth")
    fakes = [
        {"uuid": uuid, "name": name, "power_state": "Off", "external_notifier": False, "nics": NICS}
        for name, uuid in systems.items()
    ]
    (folder / "bmc.conf").write_text(
        f"SUSHY_EMULATOR_FAKE_DRIVER=True\nSUSHY_EMULATOR_STATE_DIR={str(run)!r}\nSUSHY_EMULATOR_FAKE_SYSTEMS={fakes!r}\n"
        + auth.get("bmc", "")
    )
    (folder / "ironic.conf").write_text(
        CONFIG.format(run=run, host=host, api=there.url.rpartition(":")[2], auth=f"auth_strategy={strategy}")
        + auth.get("sections", "")
    )
    shutil.copy(_schema(place), run / "ironic.sqlite")
    port = there.bmc.rpartition(":")[2]
    there.argv = {
        "bmc": (f"{place}/sushy-emulator", "--config", f"{folder}/bmc.conf", "-i", "127.0.0.1", "-p", port),
        "ironic": (f"{place}/ironic", "--config-file", f"{folder}/ironic.conf"),
    }
    try:
        there.start("bmc")
        there.start("ironic")
        there.until_up()
        yield there
    finally:
        there.close()


async def until_done(ask: Callable[[str], Awaitable[Outcome]]) -> Outcome:
    """The outcome, as the runner comes to it: asked once, then looked at; what was not done is asked again."""
    how = "perform"
    async with asyncio.timeout(90):
        while True:
            try:
                outcome = await ask(how)
            except BusyTargetError:
                how = "observe"
                continue
            if outcome.result == "done":
                return outcome
            how = "perform" if outcome.result == "not_done" else "observe"
            await asyncio.sleep(0.2)
