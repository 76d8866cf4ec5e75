"""Findings of an examination of a cluster, whichever scheduler it has."""

from msgspec import Struct


class ClusterFinding(Struct, frozen=True):
    """One thing that an examination says of a cluster.

    `kind`: reach, version, tool, permission or node; `name` is what is meant. `bad`: something has to be done, which
    `instead` says. `remediator`: a tool beside which Hostler does not act before a person has accepted it.
    """

    cluster: str
    kind: str
    name: str
    text: str
    bad: bool = False
    instead: str = ""
    remediator: bool = False


def unlisted(cluster: str, scheduler: str, names: dict[str, str], listed: frozenset[str]) -> list[ClusterFinding]:
    """Nodes of ours (by the name they should have there) that the scheduler does not list, and the other way round."""
    found = [
        ClusterFinding(
            cluster,
            "node",
            node,
            f"{scheduler} lists no node {name}",
            bad=True,
            instead=f"hostler node rebind {node} --kind {scheduler} --value NAME --reason …, or let it join",
        )
        for name, node in sorted(names.items())
        if name not in listed
    ]
    others = sorted(listed - set(names))
    if others and names:
        shown = f"{', '.join(others[:SHOWN])}{' …' if len(others) > SHOWN else ''}"
        found.append(ClusterFinding(cluster, "node", scheduler, f"{len(others)} listed and none of ours: {shown}"))
    return found


SHOWN = 10
