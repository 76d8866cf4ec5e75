"""The table of operations: who performs it, what must hold first, and what may be done when its fate is unknown.

A driver may be asked only for kinds in this table. `waits` kinds send nothing: the present shows when they are done.
"""

from msgspec import Struct


class OperationKind(Struct, frozen=True):
    """One kind of operation.

    `port` is bmc, agent, scheduler or present. `needs` are preconditions: "drained" (no customer work left),
    "power" (no physical-work or power hold), "boot" (meant for the plan's boot). `repeatable`: may be sent again
    once it was *observed* not to have happened. `observed_by` says how its effect is seen. `settle_s` is how
    long after its deadline it may still land. `disrupts`: customer work on the node ends here at the latest. `touches`:
    the hardware was acted upon, so that only a passed check says that the node is sound. `restarts`: the node's boot
    ends or begins with it. `answers`: it needs an ability that a node's agent may lack; what is refused, crashes or
    never ends there is no answer, convicts nobody and leaves its step open (`unanswered_checks`). `aside`: it acts on a
    cluster that the node has left, and runs beside the node's plan.
    """

    kind: str
    port: str
    observed_by: str
    needs: tuple[str, ...] = ()
    repeatable: bool = True
    interruptible: bool = True
    revocable: bool = False
    settle_s: float = 0.0
    disrupts: bool = False
    removes_power: bool = False
    touches: bool = False
    restarts: bool = False
    answers: bool = False
    aside: bool = False


IDLE_CHECK = "idle_check"
"""The one operation without a plan, and the name of its mode (`core.slots`)."""

OPERATIONS: dict[str, OperationKind] = {
    row.kind: row
    for row in (
        # the BMC
        OperationKind("set_boot_network", "bmc", "the boot override is read back", ("power",)),
        OperationKind("power_on", "bmc", "power state is on", ("power",), settle_s=30, restarts=True),
        OperationKind(
            "power_off",
            "bmc",
            "power state is off",
            ("drained", "power_off"),
            settle_s=30,
            disrupts=True,
            removes_power=True,
            touches=True,
            restarts=True,
        ),
        OperationKind("locate_on", "bmc", "the LED is lit"),
        OperationKind("locate_off", "bmc", "the LED is dark"),
        OperationKind("collect_inventory", "bmc", "the reply is the effect"),
        OperationKind(
            "update_firmware",
            "bmc",
            "the component reports the new version",
            ("drained", "power"),
            repeatable=False,
            interruptible=False,
            settle_s=600,
            disrupts=True,
            touches=True,
        ),
        OperationKind("verify_firmware", "bmc", "the reply is the effect"),
        OperationKind(
            "ac_cycle",
            "bmc",
            "the BMC has restarted",
            ("drained", "power"),
            repeatable=False,
            interruptible=False,
            settle_s=240,
            disrupts=True,
            touches=True,
            restarts=True,
        ),
        OperationKind("reset_bmc", "bmc", "the BMC answers again", ("power",), repeatable=False, settle_s=240),
        # the node's agent
        OperationKind("discover_fabric", "agent", "the reply is the effect"),
        OperationKind("collect_evidence", "agent", "the reply is the effect", ("boot",), revocable=True),
        OperationKind(
            "gpu_reset",
            "agent",
            "the agent's mark of this operation",
            ("drained", "boot"),
            repeatable=False,
            settle_s=120,
            disrupts=True,
            touches=True,
        ),
        OperationKind(
            "reboot",
            "agent",
            "the boot id has changed",
            ("drained", "power", "boot"),
            repeatable=False,
            settle_s=300,
            disrupts=True,
            touches=True,
            restarts=True,
        ),
        OperationKind(
            "bmc_cold_reset",
            "agent",
            "the agent's mark of this operation",
            ("power", "boot"),
            settle_s=240,
        ),
        OperationKind(
            "run_checks", "agent", "the agent's mark of this operation", ("drained",), revocable=True, answers=True
        ),
        OperationKind(
            "sanitise", "agent", "the agent's mark of this operation", ("drained",), settle_s=60, answers=True
        ),
        # the scheduler
        OperationKind("cordon", "scheduler", "the scheduler lists our cordon"),
        OperationKind("uncordon", "scheduler", "the scheduler lists no cordon of ours"),
        OperationKind("evict", "scheduler", "the workload is gone", disrupts=True),
        OperationKind("join_cluster", "scheduler", "the cluster lists the node", revocable=True),
        OperationKind("leave_cluster", "scheduler", "the cluster lists the node no more", ("drained",), disrupts=True),
        OperationKind(IDLE_CHECK, "scheduler", "its Job has ended", revocable=True),
        # the scheduler of a cluster that the node has left
        OperationKind("cordon_uninvited", "scheduler", "that cluster lists our cordon on the Node", aside=True),
        OperationKind("delete_uninvited", "scheduler", "that cluster lists the Node no more", aside=True),
        # the cluster that a node enters at its first boot
        OperationKind("issue_join_token", "scheduler", "its token stands in that cluster", aside=True),
        # nothing is sent: the present shows it
        OperationKind("drain", "present", "the scheduler shows no customer work on the node"),
        OperationKind("verify_inventory", "present", "the parts recorded in this boot are the SKU's", answers=True),
        OperationKind("verify_cabling", "present", "a validation finds the node's ports as designed", answers=True),
        OperationKind("verify_hardware", "present", "its readings are as its SKU's hardware manifest", answers=True),
        OperationKind("wait_boot", "present", "the agent is heard with another boot id than before the restart"),
        OperationKind("wait_agent", "present", "the agent is heard"),
        OperationKind("wait_bmc", "present", "the BMC answers a look"),
    )
}

ASIDE = frozenset(row.kind for row in OPERATIONS.values() if row.aside)
"""The kinds that run beside a node's plan."""
