"""The document that says how one Slurm cluster is reached, how its jobs may be disturbed, and how it is looked at."""

import msgspec
import yaml
from msgspec import Struct

from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.drivers.slurm.check_jobs import CheckPlace
from hostler.drivers.slurm.cluster_view import Classes, Lens
from hostler.drivers.slurm.command_transport import Commands
from hostler.drivers.slurm.rest_transport import RestEndpoint
from hostler.drivers.slurm.scheduler import SlurmMethod

MAX_TEXT = 64 * 1024
BOUNDS = {"timeout_s": (1.0, 60.0), "period_s": (0.5, 60.0), "grace_s": (0.0, 86_400.0)}
"""The shortest and the longest times that make sense."""

STALE_S = 20.0


class SlurmSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """A Slurm cluster: by its commands (the default) or by slurmrestd, never both.

    `classes` say which jobs may be disturbed (`Classes`), `gpus_named` that GPU n of Slurm's is the node's gpun.
    `grace_s` a graceful job gets after SIGTERM; `requeue`: what Slurm may start again is requeued instead of cancelled;
    `reboots`: nodes are rebooted by `scontrol reboot ASAP` instead of their agents. `checks`: where idle checks run.
    """

    commands: Commands | None = None
    rest: RestEndpoint | None = None
    classes: Classes = Classes()
    gpus_named: bool = True
    grace_s: float = 60.0
    requeue: bool = True
    period_s: float = 2.0
    reboots: bool = False
    checks: CheckPlace | None = None

    @property
    def manner(self) -> SlurmMethod:
        """The same, as the scheduler wants it."""
        stale_s = max(STALE_S, 3 * self.period_s)
        lens = Lens(self.classes, self.gpus_named, self.checks.partition if self.checks else "")
        return SlurmMethod(lens, self.grace_s, self.requeue, self.period_s, stale_s, self.reboots, self.checks)


def parse(name: str, text: str) -> SlurmSettings:
    """The settings in a YAML document called `name`. Raises InvalidInputError."""
    if len(text) > MAX_TEXT:
        raise _unusable(name, f"{len(text)} characters", f"write at most {MAX_TEXT}")
    try:
        loaded = yaml.safe_load(text)
        found = msgspec.convert({} if loaded is None else loaded, SlurmSettings)
    except yaml.YAMLError as error:
        raise _unusable(name, " ".join(str(error).split())[:300], "write YAML") from error
    except (msgspec.ValidationError, RecursionError) as error:
        known = ", ".join(field.name for field in msgspec.structs.fields(SlurmSettings))
        raise _unusable(name, str(error), f"a Slurm cluster has {known}") from error
    _check(name, found)
    return found


def _check(name: str, found: SlurmSettings) -> None:
    if found.commands is not None and found.rest is not None:
        raise _unusable(name, "both commands and rest", "keep one of them")
    if found.rest is not None and found.reboots:
        raise _unusable(name, "reboots: slurmrestd is not asked for them", "use commands, or leave it out")
    if found.checks is not None and found.checks.wrong:
        raise _unusable(name, f"checks: {found.checks.wrong}", "correct that")
    if found.rest is not None and found.checks is not None:
        raise _unusable(name, "checks: slurmrestd is not asked for them", "use commands, or leave it out")
    named = (found, found.commands, found.rest)
    for field, (least, most) in BOUNDS.items():
        for one in named:
            value = getattr(one, field, None)
            if value is not None and not least <= value <= most:
                raise _unusable(name, f"{field}: {value:g}", f"take {least:g} to {most:g} seconds")
    for kind, classes in (("qos", found.classes.qos), ("partition", found.classes.partition)):
        if "" in classes:
            raise _unusable(name, f"classes: a {kind} without a name", "name it")


def _unusable(where: str, what: str, instead: str) -> InvalidInputError:
    return InvalidInputError((Problem(where, 0, what, instead),))
