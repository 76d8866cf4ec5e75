"""The numbers that hard worlds are made of: each with its range, the value used, and its source beside it.

Where a source gives a range, its middle is used (the geometric one of times and factors, which span decades), and the
range becomes a row of the sensitivity table. A number without a source says `assumed`, and has a row as well.
"""

from msgspec import Struct

ASSUMED = "assumed"
_RSC = "Kokolis et al., Revisiting Reliability in Large-Scale ML Research Clusters (HPCA 2025)"


class Constant(Struct, frozen=True):
    """A number of hard worlds: the range that is thinkable, and the value used."""

    name: str
    low: float
    value: float
    high: float
    meaning: str
    source: str = ASSUMED

    @property
    def assumed(self) -> bool:
        """Whether nobody has published this number."""
        return self.source.startswith(ASSUMED)


CONSTANTS: dict[str, Constant] = {
    constant.name: constant
    for constant in (
        Constant(
            "restart_s",
            120,
            300,
            900,
            "from chosen nodes to the first step",
            "assumed; Jiang et al., MegaScale (NSDI 2024), catch up with what ran before a crash within 15 min",
        ),
        Constant(
            "write_s",
            1.1,
            8,
            60,
            "a checkpoint stalls the job",
            "Wan et al., ByteCheckpoint (NSDI 2025): stalls of minutes, and 54 times shorter ones",
        ),
        Constant(
            "hang_s",
            60,
            190,
            600,
            "until the job gives up a collective that hangs",
            "PyTorch's torch.distributed: NCCL's default timeout is 10 min; 60 s is a tuned watchdog's",
        ),
        Constant(
            "notice_s",
            5,
            9,
            15,
            "until the launcher notices a dead rank",
            "PyTorch's c10d rendezvous: keep-alive every 5 s, gone after three",
        ),
        Constant(
            "lemon_share", 0.012, 0.0145, 0.017, "of the nodes are lemons, whose faults come back until repaired", _RSC
        ),
        Constant("lemon_failures", 0.0, 0.13, 0.26, "of all failures are lemons'", f"{_RSC}: 13 %; range assumed"),
        Constant(
            "repeat_factor",
            1,
            9.5,
            19,
            "as likely is a double-bit error where one was",
            "studies of the Titan supercomputer's GPUs: 9.5 times; the range is assumed",
        ),
        Constant(
            "burst_share",
            0,
            0.185,
            0.37,
            "of failures come with others of the same rack",
            "Ford et al., Availability in Globally Distributed Storage Systems (OSDI 2010): 37 % come in bursts of two "
            "and more, mostly of a rack; 0 is none",
        ),
        Constant("burst_hours", 1, 4.5, 8, "until a technician has mended what the rack shares"),
        Constant("firmware_factor", 1, 3, 10, "times as many failures in the week after a change of firmware"),
        Constant("firmware_share", 0.0, 0.10, 0.5, "of the nodes get that firmware"),
        Constant("idle_factor", 0, 0.5, 1, "of a member's failures befall a node that stands idle"),
        Constant("bad_spares", 0, 0.05, 0.15, "of the spares are broken before anybody uses them"),
        Constant("nothing_found", 0, 0.2, 0.5, "of the nodes sent away come back as they went: no fault found"),
        Constant("dead_on_arrival", 0, 0.05, 0.15, "of the nodes sent away come back with another fault"),
        Constant("vendor_days", 3, 7.5, 21, "at the vendor, give or take a third"),
        Constant(
            "corruption_found",
            0.1,
            0.4,
            0.9,
            "chance that a check finds a part that corrupts silently",
            "assumed; synthetic burn-in is said to miss more than 60 %",
        ),
        Constant("corruption_hours", 0.1, 0.5, 4, "until the loss shows it, give or take two thirds"),
        Constant("stragglers", 0, 0.5, 2, "nodes become slow, per 1,000 node-days"),
        Constant("slowdown", 0.05, 0.15, 0.4, "of its speed is what the job loses to a slow node"),
        Constant(
            "slow_hours",
            0.01,
            0.5,
            10,
            "until a slow node that recovers by itself has",
            "Wu et al., Falcon (2024): fail-slows last from tens of seconds to nearly ten hours",
        ),
        Constant("slow_seen_hours", 0.2, 1, 6, "until the job's owner has found the slow node"),
    )
}
"""Name → constant, in the order in which the documents show them."""
