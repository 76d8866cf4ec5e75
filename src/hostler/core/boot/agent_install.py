"""Part of cloud-init's data that brings the node agent up in a boot: its files, its package, its unit. Pure."""

from typing import Any

import msgspec

from hostler.core.state.boot import BootAgent, BootConfiguration
from hostler.core.state.model import Node

ENROL_FILE = "/etc/hostler/enrol.json"
"""Path of the address at which the agent enrols; only root reads it, as the address is this boot's secret."""
ENVIRONMENT, AUTHORITY = "/etc/hostler/agent.env", "/etc/hostler/ca.pem"
TOKEN_FILE = "/var/lib/hostler-agent/agent-token"  # noqa: S105 - a path
"""Path at which the enrolment puts the token: the unit may not write below /etc."""
PACKAGE = "/run/hostler-agent.deb"

FETCH = """
import hashlib, sys, urllib.request
url, sha256, place = sys.argv[1:]
body = urllib.request.urlopen(url, timeout=60).read()
if hashlib.sha256(body).hexdigest() != sha256:
    sys.exit(f"{url} is not what its sha256 says")
open(place, "wb").write(body)
""".strip()
"""cloud-init brings Python with it, and an image need not have curl."""


def agent_layer(boots: BootConfiguration, node: Node, own: str) -> dict[str, Any]:
    """Part of user-data; empty where boots install no agent, without the secret's address in a preview (`own` "")."""
    agent = boots.agent
    if agent is None:
        return {}
    files = [_file(ENVIRONMENT, _environment(agent, node), "0644"), _file(AUTHORITY, agent.ca, "0644")]
    if own:
        files.append(_file(ENROL_FILE, msgspec.json.encode({"url": f"{own}/enrol"}).decode(), "0600"))
    url = f"{boots.url}/images/{agent.package}"
    # One command: where the package cannot be had, nothing is installed, and cloud-init says what failed.
    install = f"python3 -c '{FETCH}' {url} {agent.sha256} {PACKAGE} && dpkg --install {PACKAGE}"
    start = "systemctl enable --now hostler-agent"
    return {"write_files": files, "runcmd": [["sh", "-c", f"{install} && {start}"]]}


def _environment(agent: BootAgent, node: Node) -> str:
    options = " ".join(word for word in (f"--node {node.id}", f"--token-file {TOKEN_FILE}", agent.options) if word)
    return f"HOSTLER_SERVER={agent.server}\nHOSTLER_AGENT_OPTIONS={options}\n"


def _file(path: str, content: str, mode: str) -> dict[str, str]:
    return {"path": path, "permissions": mode, "content": content}
