"""A real Keystone on loopback, from a venv that is made once, with a user, a project and an application credential.

Nothing of it is a dependency of the project: `pip install keystone` into a folder of the user's cache.
"""

import getpass
import grp
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.contract.ironic_world import START_S
from tests.contract.pypi_programs import installed
from tests.end_to_end.processes import free_port
from tests.tied_processes import tied

PACKAGES = ("keystone==30.0.0",)
PASSWORD = "a password of the test"
CONFIG = """[DEFAULT]
log_file={run}/keystone.log
[database]
connection=sqlite:///{run}/keystone.sqlite
[fernet_tokens]
key_repository={run}/fernet
[fernet_receipts]
key_repository={run}/receipts
[credential]
key_repository={run}/credential
"""
SERVER = """
import os, sys
from wsgiref.simple_server import WSGIRequestHandler, make_server
os.environ["OS_KEYSTONE_CONFIG_FILES"] = sys.argv[1]
port = int(sys.argv[2])
sys.argv = sys.argv[:1]
from keystone.server.wsgi import initialize_public_application
make_server("127.0.0.1", port, initialize_public_application()).serve_forever()
"""


def programs() -> Path:
    """The folder of its programs, installed where they are not yet. Raises MissingError."""
    return installed("keystone-30", PACKAGES)


class RealKeystone:
    """A Keystone with its first administrator, who has a project."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v3"

    @property
    def login(self) -> dict[str, str]:
        """The fields of a secret that enters by the administrator's password, for the whole system."""
        return {"username": "admin", "password": PASSWORD, "user_domain_id": "default", "system_scope": "all"}

    def token(self, *, system: bool = True) -> tuple[str, Any]:
        """A token of the administrator's for the system or for their project, and what it is good for."""
        user = {"name": "admin", "password": PASSWORD, "domain": {"id": "default"}}
        project: dict[str, Any] = {"project": {"name": "admin", "domain": {"id": "default"}}}
        scope = {"system": {"all": True}} if system else project
        identity = {"methods": ["password"], "password": {"user": user}}
        headers, body = self._call("POST", "/auth/tokens", {"auth": {"identity": identity, "scope": scope}})
        return headers["X-Subject-Token"], body["token"]

    def application_credential(self, name: str) -> dict[str, str]:
        """The fields of a secret that enters by an application credential, made now: it is a project's."""
        token, told = self.token(system=False)
        body = {"application_credential": {"name": name, "roles": [{"name": "admin"}]}}
        place = f"/users/{told['user']['id']}/application_credentials"
        made = self._call("POST", place, body, token)[1]["application_credential"]
        return {"application_credential_id": made["id"], "application_credential_secret": made["secret"]}

    @property
    def project(self) -> str:
        """The id of the administrator's project."""
        return str(self.token(system=False)[1]["project"]["id"])

    def revoke_all(self) -> None:
        """End every token of the administrator's before its time: so does a user who is switched off and on.

        Keystone compares whole seconds: a token that is issued within the same one would end with them.
        """
        token, told = self.token()
        place = f"/users/{told['user']['id']}"
        self._call("PATCH", place, {"user": {"password": PASSWORD}}, token)
        time.sleep(1.1)

    def _call(self, method: str, path: str, body: Any, token: str = "", more: Any = None) -> tuple[Any, Any]:
        headers = {"Content-Type": "application/json", **({"X-Auth-Token": token} if token else {}), **(more or {})}
        data = json.dumps(body).encode() if body is not None else None
        asked = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)  # noqa: S310 - loopback
        with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310 - loopback
            raw = answer.read()
            return answer.headers, json.loads(raw) if raw else None


@contextmanager
def real_keystone(folder: Path) -> Iterator[RealKeystone]:
    """Process of a Keystone while the block runs. Raises MissingError."""
    place, run = programs(), folder / "keystone"
    run.mkdir(parents=True)
    file = run / "keystone.conf"
    file.write_text(CONFIG.format(run=run))
    there = RealKeystone(free_port())
    owner = ("--keystone-user", getpass.getuser(), "--keystone-group", grp.getgrgid(os.getgid()).gr_name)
    address = (f"--bootstrap-{kind}-url={there.url}" for kind in ("admin", "internal", "public"))
    bootstrap = ("bootstrap", f"--bootstrap-password={PASSWORD}", "--bootstrap-region-id=test", *address)
    keys = ((f"{kind}_setup", *owner) for kind in ("fernet", "credential", "receipt"))
    for argv in (("db_sync",), *keys, bootstrap):
        managed = (f"{place}/keystone-manage", "--config-file", str(file), *argv)
        subprocess.run(managed, check=True, capture_output=True, timeout=START_S)
    port = there.url.rpartition(":")[2].removesuffix("/v3")
    with (run / "out").open("wb") as out:
        argv = tied(f"{place}/python", "-c", SERVER, str(file), port)
        child = subprocess.Popen(argv, stdout=out, stderr=out, start_new_session=True)
        try:
            _wait(there, run)
            yield there
        finally:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait(15)


def _wait(there: RealKeystone, run: Path) -> None:
    end = time.monotonic() + START_S
    while True:
        try:
            there.token()
        except (urllib.error.URLError, OSError):
            assert time.monotonic() < end, (run / "out").read_text()[-2000:]
            time.sleep(0.2)
        else:
            return
