"""A served cell with a boot listener, an emulated BMC, and the machine behind it, which QEMU plays."""

import asyncio
import hashlib
import json
import os
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from msgspec.structs import replace

from hostler.journal.opening import open_journal
from hostler.server.tokens import Grant, Role, TokenStore
from hostler.sim.bmc.emulated_machine import Delays, Machine, Quirks, gpu_server
from hostler.sim.bmc.http_farm import Farm
from hostler.sim.bmc.redfish_service import Service
from tests.boot_guest import BIOS, FROM_MEDIUM, IPXE_EFI, IPXE_KERNEL, UEFI_HTTP, Guest, build_image
from tests.debian_guest import ARGS, MEMORY_MB, build_debian
from tests.end_to_end.processes import HOSTLER, answers, free_port, process
from tests.kubelet_layer import KUBELET_MB, build_kubelet_layer
from tests.suite_layer import build_suite_layer
from tests.time_server import chrony, time_server

DEADLINE_S = 150.0
SERIAL, MAC = "SN-BOOT-0001", "52:54:00:12:34:01"
AT_ONCE = Delays(on=(0.0, 0.0), off=(0.0, 0.0), boot=(0.0, 0.0), write=(5.0, 5.0))
POLICY = Path(__file__).parents[2] / "src/hostler/core/policy/default_policy.yaml"


@dataclass(frozen=True)
class BootedImage:
    """Image to boot: what makes its kernel and its initial file systems in a folder, and what it needs."""

    build: Callable[[Path], tuple[Path, ...]]
    args: str
    memory_mb: int
    keeps_time: bool = False
    """Whether it has cloud-init itself and chrony, which is told this machine's time."""


@dataclass(frozen=True)
class BootedCluster:
    """A cluster by Hostler's kubeconfig. `at_boot`: a machine enters it when it boots, not when it is delivered."""

    kubeconfig: Path
    at_boot: bool = True


@dataclass(frozen=True)
class BootedAgent:
    """The agent that a booted machine installs, and what its SKU says beside its GPUs.

    `pools` are of the cell, `files` (path → content) of every machine.
    """

    package: Path
    options: str = ""
    tpm_authorities: str = ""
    sku: dict[str, Any] = field(default_factory=dict)
    pools: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


BUSYBOX = BootedImage(build_image, "console=ttyS0 quiet no_timer_check", 256)
DEBIAN = BootedImage(build_debian, ARGS, MEMORY_MB, keeps_time=True)
DEBIAN_WITH_KUBELET = BootedImage(
    lambda to: (*build_debian(to), build_kubelet_layer(to / "kubelet")), ARGS, MEMORY_MB + KUBELET_MB, keeps_time=True
)
DEBIAN_WITH_ALL = BootedImage(
    lambda to: (*build_debian(to), build_suite_layer(to / "suite"), build_kubelet_layer(to / "kubelet")),
    ARGS,
    MEMORY_MB + KUBELET_MB,
    keeps_time=True,
)
CLUSTER = "k1"


@dataclass
class BootedWorld:
    """The cell's API and boot listener, and the machine."""

    server: str
    boot: str
    token: str
    guest: Guest
    machine: Machine
    session: aiohttp.ClientSession
    origin: str
    authority: str = ""
    data: Path = Path()

    async def call(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        async with self.session.request(method, self.server + path, headers=headers, json=body) as answer:
            assert answer.status in (200, 201), await answer.text()
            return await answer.json()

    async def until(self, seen: Callable[[Any], bool], path: str, within_s: float = DEADLINE_S) -> Any:
        """Poll the API until it shows what is waited for."""
        found: Any = None
        try:
            async with asyncio.timeout(within_s):
                while not seen(found := await self.call("GET", path)):  # noqa: ASYNC110 - the API has no event
                    await asyncio.sleep(0.2)
        except TimeoutError:
            shown = {key: found.get("node", {}).get(key) for key in ("phase", "boot", "waiting")}
            raise AssertionError(f"{path}: {shown}\n{self.guest.console()[-3000:]}") from None
        return found

    def command(self, *words: str) -> Any:
        """Returns a command's JSON, run as a person runs it."""
        env = {**os.environ, "HOSTLER_SERVER": self.server, "HOSTLER_TOKEN": self.token, "HOSTLER_CA": self.authority}
        argv = [HOSTLER, *words, "-o", "json"]
        return json.loads(subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=True).stdout)


@asynccontextmanager
async def booted_world(
    directory: Path,
    firmware: str = BIOS,
    image: BootedImage | None = None,
    agent: BootedAgent | None = None,
    cluster: BootedCluster | None = None,
    loader: Path = IPXE_EFI,
    phases: str = "",
) -> AsyncIterator[BootedWorld]:
    """World that is up, no node registered yet. With an agent the API speaks TLS, by a certificate of its own.

    `loader` is the boot loader that UEFI starts, from a medium or by HTTP; `phases` are what phases boot otherwise.
    """
    data, images = directory / "data", directory / "images"
    data.mkdir(mode=0o700)
    images.mkdir()
    port, boot_port = free_port(), free_port()
    booted = image or BUSYBOX
    tls = certificate(directory) if agent is not None else ()
    shutil.copyfile(loader, images / "ipxe.efi")
    documents = _documents(directory, booted, boot_port, CLUSTER if cluster is not None and cluster.at_boot else "")
    if phases:
        with (directory / "boot.yaml").open("a") as told:
            told.write(f"  phases: {phases}\n")
    if cluster is not None:
        documents += ("--cluster", f"{CLUSTER}={cluster.kubeconfig}@x")
    if firmware in FROM_MEDIUM:
        _media_document(directory, f"http://127.0.0.1:{boot_port}")
    if agent is not None:
        _agent_document(directory, agent, f"https://10.0.2.2:{port}")
    open_journal(data / "journal.db").close()  # tokens without a journal are a cell that has lost it
    store = TokenStore(data / "tokens.db")
    token = store.create(Grant("operator-in-test", Role.operator))
    store.close()
    guest = Guest(MAC, SERIAL, directory / "console", firmware, booted.memory_mb)
    hardware = gpu_server(SERIAL, 0)
    if agent is not None:  # parts are the agent's to tell: this BMC is of another machine's kind
        hardware = replace(hardware, parts=())
    # HPE's BMCs keep no HTTP boot address here; their virtual drives take a medium.
    machine = Machine("1", hardware, AT_ONCE, Quirks(vendor="hpe" if firmware in FROM_MEDIUM else ""))
    # Nodes call it by another name than loopback's: what listens there answers to no other.
    host = "0.0.0.0" if agent is not None else "127.0.0.1"
    serve = ("serve", "--data", str(data), "--listen", f"{host}:{port}", *tls)
    boots = ("--boot-listen", f"127.0.0.1:{boot_port}", "--boot-images", str(images))
    trust = ssl.create_default_context(cafile=str(directory / "ca.pem")) if agent is not None else True
    connector = aiohttp.TCPConnector(ssl=trust)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        Farm(lambda: datetime.now(UTC)) as farm,
        time_server() as clock,
    ):
        if booted.keeps_time:
            _time_document(directory, clock)
        origin = await farm.serve(Service([machine]))
        power = _Power(machine, guest, f"http://10.0.2.2:{boot_port}/ipxe", session)
        async with process(HOSTLER, *serve, *boots, *documents, log=directory / "log"), power:
            server = f"{'https' if agent is not None else 'http'}://127.0.0.1:{port}"
            await answers(session, f"{server}/readyz", DEADLINE_S)
            authority = str(directory / "ca.pem") if agent is not None else ""
            boot = f"http://127.0.0.1:{boot_port}"
            yield BootedWorld(server, boot, token, guest, machine, session, origin, authority, data)


def certificate(directory: Path) -> tuple[str, ...]:
    """A certificate of the API, as nodes and this machine reach it; the words by which `serve` takes it."""
    ca, key = directory / "ca.pem", directory / "key.pem"
    words = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    names = ("-subj", "/CN=hostler", "-addext", "subjectAltName=IP:10.0.2.2,IP:127.0.0.1")
    made = ("openssl", *words, *names, "-keyout", str(key), "-out", str(ca))
    subprocess.run(made, check=True, capture_output=True)
    key.chmod(0o600)
    return ("--tls-cert", str(ca), "--tls-key", str(key))


def _agent_document(directory: Path, agent: BootedAgent, server: str) -> None:
    """The boot section once more, with the agent's; and the SKU of the machine."""
    package = directory / "images/hostler-agent.deb"
    shutil.copyfile(agent.package, package)
    told = yaml.safe_load((directory / "boot.yaml").read_text())
    told["boot"]["agent"] = {
        "package": package.name,
        "sha256": hashlib.sha256(package.read_bytes()).hexdigest(),
        "server": server,
        "ca": (directory / "ca.pem").read_text(),
        "options": agent.options,
        "tpm_authorities": agent.tpm_authorities,
    }
    told["skus"]["this"] |= agent.sku
    told["pools"] = agent.pools
    files = [{"path": path, "content": content} for path, content in agent.files.items()]
    told["boot"]["cloud_init"]["site"]["user_data"]["write_files"] = files
    (directory / "boot.yaml").write_text(yaml.safe_dump(told))


def _time_document(directory: Path, port: int) -> None:
    """The boot section once more, with the site's time server."""
    told = yaml.safe_load((directory / "boot.yaml").read_text())
    told["boot"]["cloud_init"]["site"]["user_data"]["ntp"] = chrony("10.0.2.2", port)
    (directory / "boot.yaml").write_text(yaml.safe_dump(told))


def _media_document(directory: Path, bmcs_reach: str) -> None:
    """The boot section once more, with a medium, as `hostler boot medium` makes and names it."""
    out = directory / "images/boot.iso"
    argv = [HOSTLER, "boot", "medium", str(directory / "images/ipxe.efi"), str(out), "--bios", str(IPXE_KERNEL)]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True).stdout
    told = yaml.safe_load((directory / "boot.yaml").read_text())
    told["boot"] |= yaml.safe_load(said)
    told["boot"]["media"]["url"] = bmcs_reach
    (directory / "boot.yaml").write_text(yaml.safe_dump(told))


def _documents(directory: Path, image: BootedImage, boot_port: int, cluster: str) -> tuple[str, ...]:
    images = directory / "images"
    files = image.build(images)
    layers = ", ".join(file.name for file in files[1:])
    loader = hashlib.sha256((images / "ipxe.efi").read_bytes()).hexdigest()
    sums = "\n".join(f"        {f.name}: {hashlib.sha256(f.read_bytes()).hexdigest()}" for f in files)
    (directory / "boot.yaml").write_text(f"""
skus:
  this: {{gpus: 0}}
boot:
  url: http://10.0.2.2:{boot_port}
  mac_only: false
  cluster: "{cluster}"
  loaders: {{x86_64: {{file: ipxe.efi, sha256: {loader}}}}}
  images:
    production:
      kernel: vmlinuz
      initrd: [{layers}]
      args: {image.args}
      sha256:
{sums}
  cloud_init:
    site:
      user_data: {{timezone: Etc/UTC}}
""")
    return ("--config", str(POLICY), "--config", str(directory / "boot.yaml"))


class _Power:
    """Switches the emulated machine's power: it starts from where the BMC says, else from the network as it comes."""

    def __init__(self, machine: Machine, guest: Guest, otherwise: str, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._machine = machine
        self._guest = guest
        self._otherwise = otherwise
        self._tasks: set[asyncio.Task[None]] = set()
        machine.on_boot = self._boots
        machine.on_power = self._powers

    async def __aenter__(self) -> None:
        self._spawn(self._tick())

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._guest.power_off()

    def _dhcp(self) -> str:
        """Answers as the network's DHCP server does to a boot loader that UEFI has fetched."""
        return self._otherwise if self._guest.firmware == UEFI_HTTP else ""

    def _boots(self, _system: str, source: str, _at: datetime) -> None:
        if source == "Cd":
            self._spawn(self._from_medium(self._machine.booted_uri))
            return
        self._spawn(self._guest.power_on(self._machine.booted_uri or self._otherwise, self._dhcp()))

    async def _from_medium(self, address: str) -> None:
        """The BMC reads the medium again, as they do when the machine starts."""
        async with self._session.get(address) as answer:
            assert answer.status == 200, await answer.text()
            self._guest.medium.write_bytes(await answer.read())
        await self._guest.power_on(self._otherwise)

    def _powers(self, _system: str, power: str, _at: datetime) -> None:
        if power == "Off":
            self._spawn(self._guest.power_off())

    def _spawn(self, work: Any) -> None:
        self._tasks.add(asyncio.ensure_future(work))

    async def _tick(self) -> None:
        """Let happen what is due at the BMC, also while nobody asks it."""
        while True:
            self._machine.advance(datetime.now(UTC))
            await asyncio.sleep(0.1)
