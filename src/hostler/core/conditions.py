"""Every condition a node can have: how grave it is, what ends it, and what a person should look at.

The response to each row is the operator's choice and lives in the policy document
(`policy/default_policy.yaml`); a test holds the two tables together.
"""

from typing import Literal

from msgspec import Struct

from hostler.core.model import Severity

Clears = Literal["remedy", "observation", "operator", "age"]

HOUR_S = 3_600.0
DAY_S = 86_400.0


class ConditionKind(Struct, frozen=True):
    """One row. `clears` as in `model.Condition`; `expires_s` is set exactly where it clears by age.

    `meaning` is one sentence for people, `investigate` where to look first. `one_per` says whether several
    parts of one node can have it side by side.
    """

    type: str
    severity: Severity
    clears: Clears
    meaning: str
    investigate: str
    one_per: Literal["part", "node"] = "part"
    expires_s: float | None = None


_INFO, _WARNING, _DEGRADED, _CRITICAL, _CATASTROPHIC = Severity

CONDITIONS: dict[str, ConditionKind] = {
    kind.type: kind
    for kind in (
        # GPUs: what the driver says of them
        ConditionKind(
            "gpu.fallen_off_bus",
            _CRITICAL,
            "remedy",
            "The GPU no longer answers on PCIe.",
            "Power and seating of the board, the PCIe error counters, the slot's retimer.",
        ),
        ConditionKind(
            "gpu.ecc_uncorrectable",
            _CRITICAL,
            "remedy",
            "GPU memory returned an error that its code could not correct.",
            "Row-remap counters after the reset; a second one makes replacement likely.",
        ),
        ConditionKind(
            "gpu.ecc_contained",
            _DEGRADED,
            "remedy",
            "An uncorrectable memory error was confined to one application, which has ended.",
            "Whether a row remap waits for the next reset.",
        ),
        ConditionKind(
            "gpu.ecc_uncontained",
            _CRITICAL,
            "remedy",
            "An uncorrectable memory error may have spread to every application on the GPU.",
            "Row-remap counters after the reset, and results computed since.",
        ),
        ConditionKind(
            "gpu.row_remap_pending",
            _DEGRADED,
            "remedy",
            "A bad memory row was recorded and will be replaced by a spare at the next reset.",
            "How many rows of the bank are spent already.",
        ),
        ConditionKind(
            "gpu.row_remap_failure",
            _CRITICAL,
            "remedy",
            "A bad memory row could not be replaced by a spare.",
            "The vendor's replacement criteria: a remap failure usually meets them.",
        ),
        ConditionKind(
            "gpu.gsp_timeout",
            _CRITICAL,
            "remedy",
            "The GPU's system processor (GSP) stopped answering the driver.",
            "The RPC history in the kernel log; driver and GSP firmware versions.",
        ),
        ConditionKind(
            "gpu.nvlink_error",
            _CRITICAL,
            "remedy",
            "An NVLink of the GPU failed.",
            "The link number, its peer, and the NVSwitch log of the same moment.",
        ),
        ConditionKind(
            "gpu.reset_required",
            _CRITICAL,
            "remedy",
            "The GPU must be reset before it computes again.",
            "The code that asked for it, and whether it asks again after the reset.",
        ),
        ConditionKind(
            "gpu.drain_and_reset",
            _DEGRADED,
            "remedy",
            "The GPU goes on with reduced means and asks for a reset once its work has ended.",
            "Row-remap and link state of the GPU.",
        ),
        ConditionKind(
            "gpu.reboot_required",
            _CRITICAL,
            "remedy",
            "Only a restart of the node brings the GPU back.",
            "The code that asked for it, and whether a GPU fell off the bus before.",
        ),
        ConditionKind(
            "gpu.application_error",
            _INFO,
            "age",
            "A program on the GPU failed; the GPU itself is not suspected.",
            "The program. The same code under different programs would point at the GPU.",
            expires_s=DAY_S,
        ),
        ConditionKind(
            "gpu.informational",
            _INFO,
            "age",
            "The driver reported something that needs no action by itself.",
            "Other codes of the same GPU and minute: this one often follows from them.",
            expires_s=DAY_S,
        ),
        ConditionKind(
            "gpu.xid_unknown",
            _WARNING,
            "operator",
            "The driver reported a code that no catalogue lists.",
            "The raw line, the driver's release notes, the vendor's support.",
        ),
        ConditionKind(
            "gpu.xid_investigate",
            _WARNING,
            "age",
            "The driver reported a code whose catalogue entry asks for investigation, not for an action.",
            "The catalogue's investigatory action, in the finding's facts.",
            expires_s=7 * DAY_S,
        ),
        ConditionKind(
            "gpu.thermal",
            _DEGRADED,
            "observation",
            "The GPU slows itself down because it is hot.",
            "Fans, coolant flow, thermal paste, and its neighbours' temperatures.",
        ),
        ConditionKind(
            "gpu.suspect",
            _DEGRADED,
            "remedy",
            "Statistics single this GPU out although no check has failed.",
            "Its residuals against its cohort, and the suspect profile with witnesses.",
        ),
        ConditionKind(
            "gpu.silent_corruption",
            _CRITICAL,
            "remedy",
            "The GPU computed a wrong result without reporting an error.",
            "The same operands on a witness; the work done on it since its last good check.",
        ),
        # the way findings reach us
        ConditionKind(
            "kernel_log.userspace_origin",
            _INFO,
            "age",
            "A line that looks like a hardware fault was not written by the kernel.",
            "Who wrote it: a test tool, a container with access to /dev/kmsg, or a forgery.",
            one_per="node",
            expires_s=DAY_S,
        ),
        ConditionKind(
            "kernel_log.overrun",
            _WARNING,
            "age",
            "The kernel log ran over before the agent read it; faults may have gone unseen.",
            "What floods the log, and the size of the kernel's log buffer.",
            one_per="node",
            expires_s=DAY_S,
        ),
        ConditionKind(
            "observation.unreadable",
            _INFO,
            "age",
            "An observation, or a reading in it, could not be understood, so it proves nothing.",
            "The stored observation; versions of the agent and the BMC.",
            expires_s=HOUR_S,
        ),
        ConditionKind(
            "agent.lost",
            _CRITICAL,
            "observation",
            "The node's agent has been silent longer than allowed.",
            "Whether BMC and scheduler still reach the node.",
            one_per="node",
        ),
        ConditionKind(
            "agent.collector_failed",
            _DEGRADED,
            "observation",
            "A collector of the agent has stopped, so the node is watched only in part.",
            "The agent's own log; permissions on the collector's source.",
        ),
        ConditionKind(
            "agent.spool_overflow",
            _WARNING,
            "age",
            "The agent dropped observations because its spool was full.",
            "How long the controller was out of reach, and the spool's disk.",
            one_per="node",
            expires_s=DAY_S,
        ),
        ConditionKind(
            "bmc.unreachable",
            _DEGRADED,
            "observation",
            "The node's BMC does not answer.",
            "The management network; reset the BMC from the node through the agent.",
            one_per="node",
        ),
        # what a node consists of
        ConditionKind(
            "inventory.missing_part",
            _CRITICAL,
            "observation",
            "The node shows fewer parts of a kind than its SKU has.",
            "The empty slot named in the facts; the kernel log of the last boot.",
        ),
        ConditionKind(
            "inventory.unexpected_part",
            _WARNING,
            "observation",
            "The node shows more parts of a kind than its SKU has.",
            "Recent repairs and moves; whether the SKU is the right one.",
        ),
        ConditionKind(
            "inventory.mismatch",
            _WARNING,
            "observation",
            "A part is not of the model the SKU names, or the node's SKU is not known.",
            "The SKU document, and the ticket under which the part was swapped.",
        ),
        ConditionKind(
            "firmware.drift",
            _DEGRADED,
            "observation",
            "A component runs other firmware than the fleet's baseline.",
            "Whether it was swapped lately, or a flash failed.",
        ),
        ConditionKind(
            "binding.mismatch",
            _CRITICAL,
            "operator",
            "A name of this node was seen to answer for another machine.",
            "Cabling and addresses of the BMC; nothing is powered until this is settled.",
            one_per="node",
        ),
        # verdicts and remedies
        ConditionKind(
            "check.failed",
            _CRITICAL,
            "observation",
            "A check found the node wanting.",
            "The check's detail and its peers' values.",
        ),
        ConditionKind(
            "check.inconclusive",
            _INFO,
            "observation",
            "A check could not say either way, so the node is not verified by it.",
            "Why it broke off: pre-empted, harness error, or an impossible reading.",
        ),
        ConditionKind(
            "remedy.failed",
            _CRITICAL,
            "remedy",
            "A remedy did not achieve what it was for.",
            "The failed step and its driver's reply.",
            one_per="node",
        ),
        # power and cooling
        ConditionKind(
            "power.supply",
            _DEGRADED,
            "observation",
            "A power supply reports a fault or has no input.",
            "The supply's input cable and feed, then the supply.",
        ),
        ConditionKind(
            "power.off_unexpected",
            _CRITICAL,
            "observation",
            "The node is off although it should be serving.",
            "The BMC's event log; feeds and supplies of the rack.",
            one_per="node",
        ),
        ConditionKind(
            "cooling.leak",
            _CATASTROPHIC,
            "operator",
            "A leak detector is wet.",
            "The tray, its hoses and quick couplings, before anything is powered again.",
        ),
        ConditionKind(
            "cooling.leak_suspected",
            _DEGRADED,
            "observation",
            "A leak detector warns, short of being wet.",
            "The tray and its couplings, today.",
        ),
        ConditionKind(
            "thermal.over_limit",
            _CATASTROPHIC,
            "observation",
            "A temperature is above the hardware's limit.",
            "Coolant flow or fans, inlet temperature, neighbours in the rack.",
        ),
        # network, storage, host
        ConditionKind(
            "network.nic_down",
            _CRITICAL,
            "remedy",
            "A network adapter has failed.",
            "The adapter's firmware log, its PCIe link, its slot.",
        ),
        ConditionKind(
            "network.link",
            _DEGRADED,
            "observation",
            "A network link is down or flaps.",
            "Transceiver, cable, and the port at the other end.",
        ),
        ConditionKind(
            "storage.failed",
            _CRITICAL,
            "remedy",
            "A drive failed or its file system went read-only.",
            "The drive's own health log, then its slot.",
        ),
        ConditionKind(
            "memory.uncorrectable",
            _CRITICAL,
            "remedy",
            "Host memory returned an error that its code could not correct.",
            "The memory module named in the facts.",
        ),
        ConditionKind(
            "host.kernel_panic",
            _CRITICAL,
            "remedy",
            "The host's kernel stopped itself.",
            "The crash dump or the console's last lines.",
            one_per="node",
        ),
        ConditionKind(
            "host.failed",
            _CRITICAL,
            "remedy",
            "The host as a whole fails, without one part to blame.",
            "The BMC's event log and the last kernel lines.",
            one_per="node",
        ),
        # what persons ask for
        ConditionKind(
            "operator.maintenance",
            _WARNING,
            "operator",
            "A person has asked for the node's maintenance.",
            "The request's reason and ticket.",
            one_per="node",
        ),
        ConditionKind(
            "operator.reboot",
            _WARNING,
            "remedy",
            "A person has asked for a reboot.",
            "The request's reason.",
            one_per="node",
        ),
        ConditionKind(
            "operator.power_cycle",
            _WARNING,
            "remedy",
            "A person has asked for a power cycle.",
            "The request's reason.",
            one_per="node",
        ),
        ConditionKind(
            "operator.gpu_reset",
            _WARNING,
            "remedy",
            "A person has asked for a reset of the node's GPUs.",
            "The request's reason.",
            one_per="node",
        ),
        ConditionKind(
            "operator.replacement",
            _DEGRADED,
            "remedy",
            "A person has asked for the host to be replaced.",
            "The threshold or report that the request names.",
            one_per="node",
        ),
        # the engine's own doubts
        ConditionKind(
            "node.stuck",
            _DEGRADED,
            "operator",
            "The node has stayed in its phase beyond the limit.",
            "What it waits for, as its page says.",
            one_per="node",
        ),
        ConditionKind(
            "work.unknown",
            _WARNING,
            "observation",
            "The scheduler does not say what runs on the node, so nothing there may be disturbed.",
            "Whether the scheduler answers, and under which name it knows the node.",
            one_per="node",
        ),
    )
}
