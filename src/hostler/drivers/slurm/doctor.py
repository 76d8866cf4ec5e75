"""Examines a Slurm cluster before Hostler acts in it: its own programs that treat nodes, and its list of nodes."""

from collections.abc import Mapping

from msgspec import Struct

from hostler.drivers.slurm.transport import Transport
from hostler.ports import PortError, RefusedError
from hostler.runtime.cluster_findings import ClusterFinding, unlisted

TRIED = "22.05"
NONE = ("", "(null)", "0", "none")
"""How Slurm says that a program is not set."""


class Program(Struct, frozen=True):
    """A setting of slurm.conf that names a program which treats nodes, and our duty towards it."""

    setting: str
    text: str
    refuse: bool = False


PROGRAMS = (
    Program(
        "HealthCheckProgram",
        "yield: a node that it drains stays drained; only reasons that begin with hostler: are ever taken back",
    ),
    Program(
        "SuspendProgram",
        "a second remediator: it powers nodes off by itself; no pool of the cluster acts beside it until a person has "
        "accepted it",
        refuse=True,
    ),
)


async def examine(transport: Transport, cluster: str, names: Mapping[str, str]) -> list[ClusterFinding]:
    """Tell what can be told; `names` are our nodes by the names they should have there.

    A cluster that does not answer is a finding, not an error.
    """
    try:
        listed = frozenset(await transport.nodes())
    except PortError as error:
        instead = "check with `sinfo` as the user that Hostler runs as"
        return [ClusterFinding(cluster, "reach", "slurm", str(error), bad=True, instead=instead)]
    found = unlisted(cluster, "slurm", dict(names), listed)
    try:
        settings = await transport.settings()
    except PortError as error:
        instead = "look for HealthCheckProgram and SuspendProgram in its slurm.conf yourself"
        return [*found, ClusterFinding(cluster, "tool", "slurm.conf", f"not read: {error}", bad=True, instead=instead)]
    version = f"Slurm {settings.get('SLURM_VERSION', 'of an unknown version')}; tried with {TRIED}"
    found.append(ClusterFinding(cluster, "version", "slurm", version))
    found.extend(_told(cluster, program, settings) for program in PROGRAMS if _is_set(program, settings))
    return found


async def second_remediators(transport: Transport) -> tuple[str, ...]:
    """List the second remediators that are set; none can be told where slurm.conf is not shown.

    Raises UnreachableError.
    """
    try:
        settings = await transport.settings()
    except RefusedError:
        return ()
    return tuple(program.setting for program in PROGRAMS if program.refuse and _is_set(program, settings))


def _is_set(program: Program, settings: Mapping[str, str]) -> bool:
    return settings.get(program.setting, "") not in NONE


def _told(cluster: str, program: Program, settings: Mapping[str, str]) -> ClusterFinding:
    text = f"{settings[program.setting]}: {program.text}"
    instead = f"take it away, or say that both may: hostler doctor accept {cluster} {program.setting} --reason …"
    bad = program.refuse
    return ClusterFinding(cluster, "tool", program.setting, text, bad, instead if bad else "", remediator=bad)
