"""The peers, and ourselves. One table; what each is modelled on is said in its document or module, by name."""

from hostler.sim.peers.cloud import auto_repair
from hostler.sim.peers.oncall import leftovers, nobody
from hostler.sim.peers.oracle import oracle
from hostler.sim.peers.peer import Peer

OURS = Peer("hostler", "Hostler's shipped policy")

WATCH_ONLY = "watch_only.yaml"

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        OURS,
        Peer(
            "reboot-only",
            "quarantine, drain, reboot; no next rung (NVSentinel's defaults)",
            policy="reboot_only.yaml",
            cap_percent=100,
            attends=leftovers,
        ),
        Peer(
            "drain-on-any",
            "cordon and drain on any condition (node-problem-detector with draino)",
            policy="drain_on_any.yaml",
            cap_percent=100,
            evicts=True,
            attends=leftovers,
        ),
        Peer(
            "auto-repair",
            "replace after ten minutes, at most 20 % (clouds' node auto-repair)",
            policy=WATCH_ONLY,
            cap_percent=20,
            evicts=True,
            attends=auto_repair,
        ),
        Peer("nobody", "people on call, 30 minutes, 60 at night", WATCH_ONLY, cap_percent=100, attends=nobody),
        Peer("oracle", "knows the fault and the shortest cure", WATCH_ONLY, cap_percent=100, attends=oracle),
    )
}
