"""Inputs of the controller's benchmarks: a fleet in production, and what its agents post."""

from datetime import UTC, datetime

from hostler.core.state.assets import Binding, Position
from hostler.core.state.model import Assignment, Node, Observation, Phase
from hostler.core.state.scopes import Scope

PER_POST = 10
LINE = "NVRM: Xid (PCI:0000:4c:00): 13, pid=4711, name=python3, Graphics Exception: ESR 0x404490=0x80000001"


def a_fleet(now: datetime, nodes: int) -> list[Node]:
    """Nodes in production as an operator's fleet has them: position, bindings, pool, failure domains."""
    return [
        Node(
            id=f"c1-n{number:06d}",
            position=Position("c1", "site", f"row{number // 2048}", f"r{number // 8}", number % 8),
            sku="h100",
            phase=Phase.production,
            phase_since=now,
            registered_at=now,
            bindings=(Binding("serial", f"S{number}", now), Binding("bmc", f"https://10.0.0.0/{number}", now)),
            domains=(
                Scope("rack", f"r{number // 8}"),
                Scope("leaf", f"l{number // 32}"),
                Scope("power", f"p{number // 64}"),
            ),
            assignment=Assignment("train", "tenant", "k1", now),
            boot_id=f"boot-{number}",
            boots=(f"boot-{number}",),
        )
        for number in range(nodes)
    ]


def a_post(number: int, nodes: int) -> tuple[Observation, ...]:
    """Returns one agent's post: ten lines of its kernel log, the first of which raises a condition."""
    now = datetime.now(UTC)
    return tuple(
        Observation(
            f"c1-n{number % nodes:06d}",
            "kernel_log",
            "agent",
            f"s{number}",
            sequence,
            boot_id=f"boot-{number % nodes}",
            text=LINE if sequence == 1 else "systemd[1]: Started Session 4 of User root.",
            facility=0,
            received=now,
        )
        for sequence in range(1, PER_POST + 1)
    )
