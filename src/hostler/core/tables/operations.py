"""The table of operations: who performs it, what must hold first, and what may be done when its fate is unknown.

A driver may be asked only for kinds in this table. `waits` kinds send nothing: the present shows when they are done.
"""

from typing import Any

from msgspec import Struct

from hostler.core.state import operations as op


class OperationKind(Struct, frozen=True):
    """One kind of operation.

    `port` is bmc, provisioner, provider, agent, scheduler, fabric or present. `needs` are preconditions: "drained" (no
    customer work left), "power" (no physical-work or power hold), "power_off" (no physical-work hold), "safe" (no leak,
    nothing too hot; a rack's asset is seen dry), "boot" (meant for the plan's boot), "heard" (the agent is heard; the
    step is passed over where it is not); `policy.presuppositions` asks them of each act. `repeatable`: may be sent
    again once it was *observed* not to have happened. `observed_by` says how its effect is seen. `settle_s` is how
    long after its deadline it may still land. `disrupts`: customer work on the node ends here at the latest. `touches`:
    the hardware was acted upon, so that only a passed check says that the node is sound. `restarts`: the node's boot
    ends or begins with it. `answers`: it needs an ability that a node's agent may lack; what is refused, crashes or
    never ends there is no answer, convicts nobody and leaves its step open (`unanswered_checks`). `aside`: it runs
    beside the node's plan, as it acts on a cluster's list or on the BMC alone. `begins_again`: the earlier step to
    which the plan goes back where a driver says that what that step brought about is gone (fact `GONE`).
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
    begins_again: str = ""


def _row(
    act: type[op.OperationAct], port: str, observed_by: str, needs: tuple[str, ...] = (), **facts: Any
) -> OperationKind:
    return OperationKind(op.kind_of(act), port, observed_by, needs, **facts)


IDLE_CHECK = "idle_check"
"""The one operation without a plan, and the name of its mode (`core.slots`)."""

OPERATIONS: dict[str, OperationKind] = {
    row.kind: row
    for row in (
        # the BMC
        _row(op.SetBootNetwork, "bmc", "the boot override is read back", ("power",)),
        _row(op.EjectBootMedium, "bmc", "no virtual drive shows a medium of ours", aside=True),
        _row(op.PowerOn, "bmc", "power state is on", ("power", "safe"), settle_s=30, restarts=True),
        _row(
            op.SwitchOff,
            "bmc",
            "power state is off",
            ("drained", "power_off"),
            settle_s=30,
            disrupts=True,
            removes_power=True,
            touches=True,
            restarts=True,
        ),
        _row(op.LocateOn, "bmc", "the LED is lit"),
        _row(op.LocateOff, "bmc", "the LED is dark"),
        _row(op.CollectInventory, "bmc", "the reply is the effect"),
        _row(
            op.WriteFirmware,
            "bmc",
            "the component reports the new version",
            ("drained", "power", "safe"),
            repeatable=False,
            interruptible=False,
            settle_s=600,
            disrupts=True,
            touches=True,
        ),
        _row(op.VerifyFirmware, "bmc", "the reply is the effect"),
        _row(op.FetchSystemImage, "bmc", "NVOS lists the image", ("power", "safe"), repeatable=False, settle_s=600),
        _row(
            op.InstallSystemImage,
            "bmc",
            "NVOS runs the new version",
            ("drained", "power", "safe"),
            repeatable=False,
            interruptible=False,
            settle_s=1800,
            disrupts=True,
            touches=True,
        ),
        _row(
            op.WriteBiosSettings,
            "bmc",
            "the settings wait in the BMC, or the BIOS has them",
            ("drained", "power", "safe"),
            settle_s=60,
            touches=True,
        ),
        _row(op.VerifyBiosSettings, "bmc", "the reply is the effect"),
        _row(
            op.CycleMains,
            "bmc",
            "the BMC has restarted",
            ("drained", "power", "safe"),
            repeatable=False,
            interruptible=False,
            settle_s=240,
            disrupts=True,
            touches=True,
            restarts=True,
        ),
        _row(
            op.CycleOutlets,
            "bmc",
            "the BMC has restarted",
            ("drained", "power", "safe"),
            repeatable=False,
            interruptible=False,
            settle_s=240,
            disrupts=True,
            touches=True,
            restarts=True,
        ),
        _row(
            op.PullCords,
            "bmc",
            "the BMC has restarted",
            ("drained", "power", "safe"),
            disrupts=True,
            touches=True,
            restarts=True,
        ),
        _row(op.ResetBmc, "bmc", "the BMC answers again", ("power", "safe"), repeatable=False, settle_s=240),
        _row(op.RenewBmcLogin, "bmc", "the login that is kept says so", aside=True),
        _row(op.WipeBmcLogin, "bmc", "nothing is kept, and the vendor's login enters"),
        _row(op.RenewDpuLogin, "bmc", "the login that is kept says so", aside=True),
        _row(op.WipeDpuLogin, "bmc", "nothing is kept, and the vendor's login enters"),
        _row(op.RenewBmcCertificate, "bmc", "the BMC shows it, and the login that is kept says so", aside=True),
        # the machine's provisioner: Ironic knows whether it is done, and is asked for it once
        _row(op.InspectMachine, "provisioner", "Ironic has it manageable, inspected since", aside=True),
        _row(op.DeployImage, "provisioner", "Ironic has it active with this image", aside=True),
        _row(op.CleanMachine, "provisioner", "Ironic has it manageable, cleaned since", aside=True),
        # the provider that owns the machine carries out each request once
        _row(
            op.ReplaceMachine,
            "provider",
            "the provider's word on this request names the new instance",
            repeatable=False,
            interruptible=False,
            aside=True,
        ),
        # the node's agent
        _row(op.DiscoverFabric, "agent", "the reply is the effect"),
        _row(op.BugReport, "agent", "the reply is the effect"),
        _row(op.CollectEvidence, "agent", "the reply is the effect", ("boot",), revocable=True),
        _row(
            op.ResetGpus,
            "agent",
            "the agent's mark of this operation",
            ("drained", "boot"),
            repeatable=False,
            settle_s=120,
            disrupts=True,
            touches=True,
        ),
        _row(
            op.RestartNode,
            "agent",
            "the boot id has changed",
            ("drained", "power", "safe", "boot"),
            repeatable=False,
            settle_s=300,
            disrupts=True,
            touches=True,
            restarts=True,
        ),
        _row(
            op.BmcColdReset,
            "agent",
            "the agent's mark of this operation",
            ("power", "boot"),
            settle_s=240,
        ),
        _row(op.RunChecks, "agent", "the agent's mark of this operation", ("drained",), revocable=True, answers=True),
        _row(op.Sanitise, "agent", "the agent's mark of this operation", ("drained",), settle_s=60, answers=True),
        _row(
            op.WriteDeviceFirmware,
            "agent",
            "the agent's mark of this operation",
            ("drained", "power", "safe"),
            interruptible=False,
            settle_s=600,
            disrupts=True,
            touches=True,
            answers=True,
        ),
        _row(op.VerifyDeviceFirmware, "agent", "the agent's mark of this operation", answers=True),
        _row(op.StartKubelet, "agent", "the agent's mark of this operation", ("heard",)),
        _row(op.StopKubelet, "agent", "the agent's mark of this operation", ("drained", "heard")),
        _row(op.ArmDrill, "agent", "the agent's mark of this operation", aside=True),
        _row(op.InjectFault, "agent", "the agent's mark of this operation", repeatable=False, aside=True),
        # the scheduler
        _row(op.CordonNode, "scheduler", "the scheduler lists our cordon"),
        _row(op.UncordonNode, "scheduler", "the scheduler lists no cordon of ours"),
        _row(op.Evict, "scheduler", "the workload is gone", disrupts=True),
        _row(op.JoinCluster, "scheduler", "the cluster lists the node", revocable=True),
        _row(
            op.ConfirmJoin,
            "scheduler",
            "the cluster lists the node as ready, and no token lets anybody in",
            revocable=True,
            begins_again="join_cluster",
        ),
        _row(op.LeaveCluster, "scheduler", "the cluster lists the node no more", ("drained",), disrupts=True),
        _row(op.IdleCheck, "scheduler", "its Job has ended", revocable=True),
        # the scheduler of a cluster that the node has left; a cordon also where it is not delivered yet
        _row(op.CordonUninvited, "scheduler", "that cluster lists our cordon on the Node", aside=True),
        _row(op.DeleteUninvited, "scheduler", "that cluster lists the Node no more", aside=True),
        # the cluster that a node enters at its first boot
        _row(op.IssueJoinToken, "scheduler", "that cluster lists it cordoned, and its token stands", aside=True),
        # a tool in the node's network
        _row(
            op.ResetPort,
            "fabric",
            "the switch's port is up and active",
            ("drained",),
            repeatable=False,
            settle_s=60,
            disrupts=True,
            touches=True,
        ),
        # nothing is sent: the present shows it
        _row(op.DrainNode, "present", "the scheduler shows no customer work on the node"),
        _row(op.VerifyInventory, "present", "the parts recorded in this boot are the SKU's", answers=True),
        _row(op.VerifyCabling, "present", "a validation finds the node's ports as designed", answers=True),
        _row(op.VerifyHardware, "present", "its readings are as its SKU's hardware manifest", answers=True),
        _row(op.WaitBoot, "present", "the agent is heard with another boot id than before the restart"),
        _row(op.WaitAgent, "present", "the agent is heard"),
        _row(op.WaitBmc, "present", "the BMC answers a look"),
    )
}

ASIDE = frozenset(row.kind for row in OPERATIONS.values() if row.aside and row.port == "scheduler")
"""The kinds that run beside a node's plan, and act on a cluster."""
