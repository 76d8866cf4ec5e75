"""The peers, and ourselves. One table; what each is modelled on is said in its document or module, by name."""

from hostler.sim.peers.cloud_auto_repair import auto_repair
from hostler.sim.peers.on_call import leftovers, nobody
from hostler.sim.peers.oracle import oracle
from hostler.sim.peers.peer import Peer

OURS = Peer("hostler", "Hostler's shipped policy")

WATCH_ONLY = "watch_only.yaml"
_HOUSE = "Hostler's controller, drains, gate checks, triage, spares and technicians"

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        OURS,
        Peer(
            "reboot-only",
            "quarantine, drain, reboot; no next rung (NVSentinel without GPU resets)",
            policy="reboot_only.yaml",
            cap_percent=100,
            attends=leftovers,
            gains=f"{_HOUSE}; our answer wherever it documents none",
            lacks="its preflight checks and its analysis of repeated events",
        ),
        Peer(
            "reset-or-reboot",
            "quarantine, drain, GPU reset or reboot; no next rung (NVSentinel with its janitor's resets)",
            policy="reset_or_reboot.yaml",
            cap_percent=100,
            attends=leftovers,
            gains=f"{_HOUSE}; our answer wherever it documents none",
            lacks="its preflight checks and its analysis of repeated events",
        ),
        Peer(
            "drain-on-any",
            "cordon and drain on any condition (node-problem-detector with draino)",
            policy="drain_on_any.yaml",
            cap_percent=100,
            evicts=True,
            attends=leftovers,
            gains=f"{_HOUSE}; what it drains is examined and comes back by itself",
            lacks="PodDisruptionBudgets: the job has none, so a drain ends it at once",
        ),
        Peer(
            "auto-repair",
            "replace after ten minutes, at most 20 % (clouds' node auto-repair)",
            policy=WATCH_ONLY,
            cap_percent=20,
            evicts=True,
            attends=auto_repair,
            gains=f"{_HOUSE}; ten minutes for everything, where some conditions wait thirty",
            lacks="a new machine within minutes: it gets the pool's spares, as all do, and the old one goes to triage",
        ),
        Peer(
            "nobody",
            "people on call, 30 minutes, 60 at night",
            WATCH_ONLY,
            cap_percent=100,
            attends=nobody,
            gains=f"{_HOUSE} once a person has asked; a page for whatever ours acts on",
            lacks="engineers who look at the job all night, as some trainings have",
        ),
        Peer(
            "oracle",
            "knows the fault and the shortest cure",
            WATCH_ONLY,
            cap_percent=100,
            attends=oracle,
            gains="every fault the moment it is there, and a cure that never fails",
        ),
    )
}
