"""The recipes of phases and remedies: steps with deadlines, one table. A plan is a frozen copy of a row.

`undo` names the easing that takes a step back when its plan ends early. Deadlines are divided by the policy's
`time_scale` when a plan is frozen.
"""

from msgspec import Struct

from hostler.core.state import operations as op
from hostler.core.state.model import ActClass, Phase
from hostler.core.state.plan_rules import Answers, OnFailure, PlanRules, Releases


class StepRow(Struct, frozen=True):
    """A step as the recipe has it. In the place of one with `each` "firmware" stand those of `firmware_plan`.

    "fabric": one per network; "link": one per link that fails; "hardware": where its SKU has a manifest; "settings":
    where it has them written; "baseline": with its versions; "login": one per BMC, of its DPUs too, that has one made
    here; "depth", and "hands" in a spare: see `return_depth`.
    """

    act: op.AnyAct
    deadline_s: float
    undo: str = ""
    optional: bool = False
    each: str = ""


class Recipe(Struct, frozen=True):
    """Steps, and where the node stands afterwards. `act_class` None: it is the remedy's timing (pending, immediate).

    `failed_phase` is where an operation that failed leads, `convicted_phase` a check that failed; None: the node stays
    where it is. A check that says nothing leads nowhere in any row: the plan stays at its step (`unanswered_checks`).
    `rules` are frozen into the plan. `last_resort`: a command for a person where the remedy is spent and none follows.
    `again_s`: its cure shows no sooner, and is not tried again before.
    """

    name: str
    steps: tuple[StepRow, ...]
    act_class: ActClass | None = None
    to_phase: Phase | None = None
    failed_phase: Phase | None = None
    convicted_phase: Phase | None = None
    disruptive: bool = False
    rules: PlanRules = PlanRules()
    last_resort: str = ""
    again_s: float = 0.0


DAY_S = 86_400.0
_CORDON = StepRow(op.CordonNode(), 60, undo="uncordon")
_DRAIN = StepRow(op.DrainNode(), DAY_S)
_EVIDENCE = StepRow(op.CollectEvidence(), 5, optional=True)
_ALL_EVIDENCE = StepRow(op.CollectEvidence(keep=True), 300, optional=True)
_GATE = StepRow(op.RunChecks("gate"), 300)
_SEATRIAL = StepRow(op.RunChecks("seatrial"), 4 * 3600)
_SUSPECT = StepRow(op.RunChecks("suspect"), 4 * 3600)
_UNCORDON = StepRow(op.UncordonNode(), 60, optional=True)
_JOIN = (
    StepRow(op.JoinCluster(), 300, undo="leave_cluster"),
    StepRow(op.StartKubelet(), 60, undo="stop_kubelet", optional=True),
    StepRow(op.ConfirmJoin(), 300),
)
_LEAVE = (StepRow(op.LeaveCluster(), 300), StepRow(op.StopKubelet(), 60, optional=True))
_COMPLETE = StepRow(op.VerifyInventory(), 900)
_CABLED = StepRow(op.VerifyCabling(), 1800, each="fabric")
_HARDWARE = StepRow(op.VerifyHardware(), 900, each="hardware")
_STILL_MISSING = StepRow(op.VerifyInventory(convicts=True), 900)
_RESET, _REBOOT = StepRow(op.ResetGpus(), 420), StepRow(op.RestartNode(), 300)
_DARK, _BOOTED = StepRow(op.SwitchOff(), 60), StepRow(op.WaitBoot(), 1200)
_POWER_CYCLE = (StepRow(op.SwitchOff(), 180), StepRow(op.PowerOn(), 180), _BOOTED)
_POWERED_ON = (StepRow(op.PowerOn(), 180), StepRow(op.WaitAgent(), 1500))
_FLASH = StepRow(op.WriteFirmware("", ""), 5400, each="firmware")
_LISTED = StepRow(op.ResetBmc(), 900, each="baseline")
_VERIFY = StepRow(op.VerifyFirmware(), 900, each="baseline")
_SETTINGS, _SET = (StepRow(act, 900, each="settings") for act in (op.WriteBiosSettings(), op.VerifyBiosSettings()))
_FIRMWARE = (_FLASH, _SETTINGS, *_POWER_CYCLE, _LISTED, _VERIFY, _SET)
_EMPTIED, _BACK = (_CORDON, _DRAIN, _EVIDENCE), (_GATE, _UNCORDON)
_NOTHING = PlanRules(answers=Answers.nothing)

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        # Day 0 and Day 1: a phase's own work
        Recipe(
            "initializing",
            (StepRow(op.SetBootNetwork(), 60), *_POWERED_ON),
            ActClass.bring_up,
            Phase.onboard,
            Phase.triage,
        ),
        Recipe(
            "seatrial",
            (*_POWERED_ON, StepRow(op.CollectInventory(), 900), _COMPLETE, _CABLED, _HARDWARE, _SEATRIAL),
            ActClass.bring_up,
            Phase.zap,
            Phase.triage,
            Phase.triage,
            rules=PlanRules(hands=True),
        ),
        Recipe("zap", _FIRMWARE, ActClass.bring_up, Phase.test, Phase.zap_fail),
        Recipe(
            "test",
            (StepRow(op.RunChecks("burn_in"), 2 * DAY_S, each="depth"), StepRow(op.Sanitise(), 3600)),
            ActClass.bring_up,
            Phase.production,
            Phase.triage,
            Phase.triage,
        ),
        Recipe(
            "examine",
            (_ALL_EVIDENCE, *_POWER_CYCLE[:2], StepRow(op.WaitBoot(), 1500), _STILL_MISSING, _HARDWARE, _SUSPECT),
            ActClass.bring_up,
            Phase.test,
            convicted_phase=Phase.rma,
            rules=PlanRules(found_phase="rma", answers=Answers.examined),
        ),
        # between the shelf and the customer
        Recipe(
            "deliver",
            (*_JOIN, *_BACK),
            ActClass.bring_up,
            rules=PlanRules(on_failure=OnFailure.undoes, answers=Answers.nothing, releases=Releases.undone),
        ),
        Recipe(
            "release",
            (_CORDON, _DRAIN, *_LEAVE, StepRow(op.Sanitise(), 3600)),
            disruptive=True,
            rules=PlanRules(left_phase="triage", releases=Releases.done),
        ),
        # remedies
        Recipe("gpu_reset", (*_EMPTIED, _RESET, *_BACK), disruptive=True, rules=PlanRules(cures="gpu_reset")),
        Recipe("reboot", (*_EMPTIED, _REBOOT, _BOOTED, *_BACK), disruptive=True, rules=PlanRules(cures="reboot")),
        Recipe("power_cycle", (*_EMPTIED, *_POWER_CYCLE, *_BACK), disruptive=True, rules=PlanRules(cures="power_on")),
        Recipe("firmware_update", (_CORDON, _DRAIN, *_FIRMWARE, *_BACK), disruptive=True),
        # what leaves the cluster takes its conditions along: triage has to find their cause
        Recipe("triage", (*_EMPTIED, *_LEAVE), to_phase=Phase.triage, disruptive=True, rules=_NOTHING),
        # from inside the node: a BMC that does not answer cannot be asked over Redfish; the node itself goes on working
        Recipe(
            "bmc_reset",
            (StepRow(op.BmcColdReset(), 120), StepRow(op.WaitBmc(), 900)),
            rules=PlanRules(cures="bmc_cold_reset"),
            last_resort="what is left is AC power: drain it (hostler node drain {node} --reason …), switch its outlets "
            "or pull its cords; or go on without (hostler node rebind {node} --kind bmc --value none --reason …)",
        ),
        # of the switch's end of a link that only this node's work uses: off unless a rule of the policy names it
        Recipe(
            "port_reset",
            (*_EMPTIED, StepRow(op.ResetPort(), 180, each="link"), *_BACK),
            disruptive=True,
            rules=PlanRules(cures="reset_port"),
            last_resort="what is left is the cable: `hostler fabric faults NETWORK` names the link and its parts",
            again_s=3600,  # a link counts as sound after three rounds of twelve minutes
        ),
        # against a Node that is listed again in the cluster its node has left (`rejoin_guard`): beside any plan
        Recipe("turn_away", (StepRow(op.CordonUninvited(), 60), StepRow(op.DeleteUninvited(), 60))),
        Recipe("renew_bmc_login", (StepRow(op.RenewBmcLogin(), 900),)),
        Recipe("renew_dpu_login", (StepRow(op.RenewDpuLogin("", ()), 900),)),
        Recipe("renew_bmc_certificate", (StepRow(op.RenewBmcCertificate(), 900),)),
        # of a node that is to be retired and whose BMC, or a DPU's, has a password of ours; its own is needed longest
        Recipe("retire", (StepRow(op.WipeBmcLogin(), 600, each="login"),), ActClass.bring_up, Phase.retired),
        # what a person has an Ironic do on a machine that serves nobody: beside any plan
        Recipe("inspect_machine", (StepRow(op.InspectMachine(), 3600),)),
        Recipe("deploy_image", (StepRow(op.DeployImage("", ""), 2 * 3600),)),
        Recipe("clean_machine", (StepRow(op.CleanMachine(()), DAY_S),)),
        # of a machine that its provider owns, in the place of a return to a vendor
        Recipe("replace_machine", (StepRow(op.ReplaceMachine(), 4 * 3600),)),
        # protection and easing
        Recipe("protective_power_off", (_DARK,), ActClass.protective, disruptive=True, rules=_NOTHING),
        Recipe("power_off", (StepRow(op.SwitchOff(), 180),), ActClass.bring_up, rules=PlanRules(keeps="power")),
        Recipe("drain", (_CORDON, _DRAIN), disruptive=True, rules=PlanRules(keeps="cordon")),
        Recipe("cordon", (_CORDON,), ActClass.easing, disruptive=True, rules=_NOTHING),
        Recipe("uncordon", (StepRow(op.UncordonNode(), 60),), ActClass.easing, rules=_NOTHING),
        Recipe("locate", (StepRow(op.LocateOn(), 60, optional=True),), ActClass.easing),
        Recipe("unlocate", (StepRow(op.LocateOff(), 60, optional=True),), ActClass.easing),
        Recipe(
            "return_to_service",
            (*_POWERED_ON, StepRow(op.VerifyInventory(), 900, each="hands"), *_BACK),
            ActClass.easing,
            rules=PlanRules(on_failure=OnFailure.raises, answers=Answers.earlier_boots, hands=True),
        ),
    )
}
