"""Ports of network adapters: what an agent says that is down, or back."""

from hostler.core.diagnose import Finding
from hostler.core.diagnose.findings import over, stands
from hostler.core.diagnose.line import printable
from hostler.core.state.configuration import Sku
from hostler.core.state.model import Node, Observation

PREFIX = "port:"
PART_CHARS = 80


def judge_ports(observation: Observation, _node: Node, _sku: Sku | None) -> list[Finding]:
    """Facts "port:mlx5_0/1" are "active" or "down" (for longer than links train); any other word is no verdict."""
    findings: list[Finding] = []
    for name, state in observation.facts.items():
        part = printable(name[:PART_CHARS])
        if not name.startswith(PREFIX) or state not in ("active", "down"):
            findings.append(
                stands(
                    "observation.unreadable",
                    f"the state of a port could not be understood: {printable(str(state)[:80])}",
                    part,
                )
            )
        elif state == "active":
            findings.append(over("network.link", f"{part} is active", part))
        else:
            findings.append(stands("network.link", f"{part} is down and stays down", part, {"port": part}))
    return findings
