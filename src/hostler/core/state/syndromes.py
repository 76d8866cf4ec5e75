"""Faults of many nodes that can have one cause: syndromes, and the shared parts that can bring them about.

How many nodes make a common cause of a kind of part is the operator's choice and lives in the policy document; that a
leaf switch silences nodes, and never corrupts their memory, is a fact and stands here.
"""

from msgspec import Struct


class Syndrome(Struct, frozen=True):
    """A syndrome: conditions that one broken shared part shows on all its nodes alike.

    `causes` are the kinds of shared part that can do so. `mute`: a node that shows it can be neither heard nor proven
    sound, so nothing on it is treated by itself. `shows` completes "8 nodes …", `investigate` says where to look.
    """

    name: str
    conditions: tuple[str, ...]
    causes: tuple[str, ...]
    shows: str
    investigate: str
    mute: bool = False


SYNDROMES: dict[str, Syndrome] = {
    syndrome.name: syndrome
    for syndrome in (
        Syndrome(
            "silence",
            ("agent.lost", "bmc.unreachable", "power.off_unexpected"),
            ("rack", "power", "leaf", "pool", "firmware"),
            "fell silent",
            "The shared switch and its uplinks, the feed and its breaker, then the management network.",
            mute=True,
        ),
        Syndrome(
            "supply",
            ("power.supply",),
            ("power", "rack"),
            "lost a power input",
            "The feed's breaker and cabling, then the supplies themselves.",
        ),
        Syndrome(
            "cooling",
            ("cooling.leak", "cooling.leak_suspected", "thermal.over_limit", "gpu.thermal"),
            ("cdu", "rack"),
            "run hot or wet",
            "Coolant flow, the rack's manifold and the distribution unit, inlet temperature.",
        ),
        Syndrome(
            "nvlink",
            (
                "gpu.nvlink_error",
                "gpu.nvlink_down",
                "gpu.fabric_unready",
                "gpu.fabric_degraded",
                "nvswitch.fabric_fatal",
                "nvswitch.link_fatal",
                "gpu.reset_required",
                "gpu.reboot_required",
            ),
            ("nvlink", "firmware"),
            "lost NVLinks",
            "The NVLink switch trays of the domain, their firmware and cartridges, the fabric manager's log.",
        ),
        Syndrome(
            "fabric",
            ("network.link", "network.link_flaps", "network.nic_down"),
            ("leaf", "rack", "firmware"),
            "lost network links",
            "The switch's ports and firmware, and its optics.",
        ),
        Syndrome(
            "cabling",
            (),
            ("switch",),
            "are cabled otherwise than designed",
            "The findings at this switch, each with its ticket.",
        ),
        Syndrome(
            "gpu",
            (
                "gpu.fallen_off_bus",
                "gpu.gsp_timeout",
                "gpu.ecc_uncorrectable",
                "gpu.ecc_uncontained",
                "accelerator.failed",
                "pcie.uncorrectable",
                "inventory.missing_part",
                "gpu.missing",
                "gpu.driver_unresponsive",
            ),
            ("firmware",),
            "show the same GPU faults",
            "What the rollout changed; roll it back on one of them and see.",
        ),
        Syndrome(
            "host",
            (
                "host.kernel_panic",
                "host.kernel_oops",
                "memory.uncorrectable",
                "storage.failed",
                "storage.read_only",
                "check.failed",
            ),
            ("firmware",),
            "show the same host faults",
            "What the rollout changed; roll it back on one of them and see.",
        ),
    )
}
"""A condition stands in one syndrome at most. What a program does to a GPU, what people ask for and what Hostler doubts
stand in none: such things never become an incident."""

SYNDROME_OF: dict[str, Syndrome] = {kind: syndrome for syndrome in SYNDROMES.values() for kind in syndrome.conditions}
"""Condition type → its syndrome."""

CAUSES: tuple[str, ...] = tuple(dict.fromkeys(kind for syndrome in SYNDROMES.values() for kind in syndrome.causes))
"""Every kind of shared part that can be blamed."""
