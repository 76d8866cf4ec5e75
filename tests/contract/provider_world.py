"""The example service of `deploy/provider` as a site starts it, with commands that play a cloud, kind and unkind."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from hostler.core.state.assets import Binding
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.state.operations import AnyAct
from hostler.drivers.provider.provider_client import ProviderAccess, Providers
from hostler.drivers.provider.provider_hands import ProviderHands
from hostler.ports import Secret
from tests.kit import NOW, a_node

SERVICE = Path(__file__).parents[2] / "deploy/provider/provider_service.py"
KEY = "a key of more than twenty-four bytes"
CLOUD = """
import json, pathlib, sys, time
act, instance, state = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
known = json.loads(state.read_text())
mood = known.get("mood", "")
known.setdefault("ran", []).append(act) if act not in ("power", "notices") else None
if mood == "slow" and act != "power":
    time.sleep(2)
if act == "power":
    print(known.get("power", ""))
elif act == "notices":
    print(json.dumps(known.get("notices", [])))
elif mood == "refuses":
    sys.stderr.write("quota exceeded"); sys.exit(3)
elif mood == "fails":
    sys.stderr.write("host not found"); sys.exit(1)
elif act == "replace":
    print(json.dumps(known.get("new", {})))
elif mood != "lies":
    known["power"] = {"power_on": "on", "power_off": "off"}.get(act, known.get("power", ""))
state.write_text(json.dumps(known))
"""


class Cloud:
    """The service and what its commands know: power, mood (slow, refuses, fails, lies), notices, the next instance."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "cloud.json"
        self.address = ""
        self._process: subprocess.Popen[str] | None = None
        self.set(power="off")
        (folder / "cloud.py").write_text(CLOUD)

    def set(self, **fields: object) -> None:
        known = json.loads(self.state.read_text()) if self.state.exists() else {}
        self.state.write_text(json.dumps({**known, **fields}))

    @property
    def ran(self) -> list[str]:
        """Commands that changed something, as often as they ran."""
        return list(json.loads(self.state.read_text()).get("ran", []))

    def start(self) -> None:
        acts = ("power_on", "power_off", "reboot", "replace", "power", "notices")
        run = [sys.executable, str(self.folder / "cloud.py")]
        commands = {act: [*run, act, "{instance}", str(self.state)] for act in acts}
        settings = {
            "port": 0,
            "key": KEY,
            "wait_s": 0.5,
            "file": str(self.folder / "requests.db"),
            "commands": commands,
        }
        (self.folder / "settings.json").write_text(json.dumps(settings))
        vector = [sys.executable, str(SERVICE), str(self.folder / "settings.json")]
        self._process = subprocess.Popen(vector, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        self.address = f"http://{self._process.stdout.readline().split()[-1]}"

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@contextmanager
def cloud(folder: Path) -> Iterator[Cloud]:
    there = Cloud(folder)
    there.start()
    try:
        yield there
    finally:
        there.stop()


class OneKey:
    """A place of secrets that keeps one key under every name."""

    def __init__(self, key: str = KEY) -> None:
        self.key = key

    async def read(self, name: str, *, anew: bool = False) -> Secret:
        return Secret({"key": self.key})


class Bmc:
    """The BMC driver behind: it notes what is handed on."""

    kinds = frozenset({"power_on", "power_off", "set_boot_network", "locate_on"})

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        self.asked.append(f"{operation.kind} {node.id}")
        return Outcome(operation.id, node.id, "done")

    observe = perform

    async def revoke(self, operation: Operation, node: Node) -> None: ...


def providers_at(url: str, key: str = KEY, timeout_s: float = 20.0) -> Providers:
    return Providers({"cloud": ProviderAccess(url, "any", ("127.0.0.0/8",), timeout_s=timeout_s)}, OneKey(key))


def hands_at(url: str, key: str = KEY) -> ProviderHands:
    return ProviderHands(Bmc(), providers_at(url, key))


def a_rented(bmc: str = "") -> Node:
    bindings = [Binding("provider", "cloud/i-1", NOW), Binding("serial", "SN1", NOW)]
    return a_node("n1", bindings=(*bindings, *([Binding("bmc", bmc, NOW)] if bmc else [])))


def an_asking(act: AnyAct, identity: str = "n1-o1") -> Operation:
    return Operation(identity, act, "n1", "p", 0, NOW, NOW + timedelta(minutes=3))
