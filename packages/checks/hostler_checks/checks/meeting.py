"""All-reduce between nodes: each runs one rank, and they meet at an address with a secret of this run.

A partner that never comes, or that goes, is no verdict on anybody: *inconclusive* for all who wait. Sums that are wrong
convict no node either: one of the nodes, or what lies between, has changed them, so the way is told as a pair of 0.
"""

import datetime as dt
import hmac
import json
import os
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

from hostler_checks import plants
from hostler_checks.answers import Answer, clean
from hostler_checks.checks.collectives import FLIPS, Group, sum_up
from hostler_checks.device import UnableError, torch_or_none
from hostler_checks.meeting_order import MeetingOrder, order_of
from hostler_checks.plants import clock_factor
from hostler_checks.work import Work, median

LOOK_S, STAY_S = 0.1, 5.0
"""Interval between looks for the others; and time the first, who has the store, stays for others to read it."""


def allreduce(work: Work) -> Answer:
    """One rank of a group, by the order whose file `params["order"]` names: no secret stands on a command line."""
    torch = torch_or_none()
    if torch is None:
        raise UnableError("no PyTorch: install hostler-checks[torch]")
    try:
        order = order_of(Path(str(work.params["order"])).read_bytes())
    except (OSError, ValueError) as error:
        raise UnableError(f"the order cannot be read: {error}") from None
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    try:
        _join(order, torch, backend)
        times, fault = _sum_up(work, order, torch, backend)
    except _AbsentError as error:
        raise UnableError(
            f"{' and '.join(error.names)} did not come, or went: not within {order.deadline_s:g} s"
        ) from None
    except (RuntimeError, ValueError, OSError) as error:
        told = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UnableError(f"{' or '.join(order.others)} did not come, or went: {clean(told, 160)}") from None
    return _told(work, order, backend, (times, fault))


class _AbsentError(RuntimeError):
    """Members that had not come when the first deadline was over, by `names`."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


def _join(order: MeetingOrder, torch: Any, backend: str) -> None:
    """Meet under a name that only who has the secret can make. Raises RuntimeError once the deadline is over.

    Raises _AbsentError where the others' names are known by then.
    """
    import torch.distributed as dist  # noqa: PLC0415 - ranks alone

    limit, rank, ranks = dt.timedelta(seconds=order.deadline_s), order.rank, len(order.names)
    if order.interface:
        os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = order.interface
    mark = hmac.new(order.secret.encode(), b"hostler meeting", sha256).hexdigest()
    # nobody is counted as they connect: a stranger without the secret is no rank
    store = dist.TCPStore(order.address, order.port, None, rank == 0, limit, wait_for_workers=False)
    met = dist.PrefixStore(mark, store)
    _gather(met, order)
    if backend == "nccl":
        torch.cuda.set_device(0)
    dist.init_process_group(backend, store=met, rank=rank, world_size=ranks, timeout=limit)


def _gather(met: Any, order: MeetingOrder) -> None:
    """Wait until all have come. Raises _AbsentError once a rank's deadline is over: its word is that of all.

    All is told in counters: old PyTorch can only wait for other keys, and who waits in vain reads a wrong answer next.
    """
    ranks, until_s = len(order.names), time.monotonic() + order.deadline_s
    met.add(f"here/{order.rank}", 1)
    met.add("here", 1)
    while (is_over := met.add("over", 0) > 0) or met.add("here", 0) < ranks:
        if is_over or time.monotonic() > until_s:
            raise _AbsentError(_absent(met, order))
        time.sleep(LOOK_S)


def _absent(met: Any, order: MeetingOrder) -> list[str]:
    """Read who did not come; the first that asks says it for all."""
    if met.add("over", 1) == 1:
        told = [name for rank, name in enumerate(order.names) if not met.add(f"here/{rank}", 0)]
        met.set("absent", json.dumps(told))
    absent: list[str] = json.loads(met.get("absent"))
    met.add("read", 1)
    if order.rank == 0:
        _stay(met, len(order.names) - len(absent))
    return absent


def _stay(met: Any, readers: int) -> None:
    """Keep the store until all who came have read who did not: it goes with the first, and who asks then is cut off."""
    until_s = time.monotonic() + STAY_S
    while met.add("read", 0) < readers and time.monotonic() < until_s:
        time.sleep(LOOK_S)


def _sum_up(work: Work, order: MeetingOrder, torch: Any, backend: str) -> tuple[list[float], str]:
    """Sum over all ranks until the time is over, and leave the group once the last has come this far."""
    import torch.distributed as dist  # noqa: PLC0415 - ranks alone

    place = "cuda:0" if backend == "nccl" else "cpu"
    group = Group(order.rank, len(order.names), place, order.mib, flips=work.plant in FLIPS)
    found = sum_up(torch, group, work.seconds)
    dist.barrier()
    dist.destroy_process_group()
    return found


def _told(work: Work, order: MeetingOrder, backend: str, found: tuple[list[float], str]) -> Answer:
    """Bus bandwidth of the group; of two nodes the way between, in Gbit/s. Both are 0 where sums were wrong."""
    times, fault = found
    ranks, size = len(order.names), order.mib << 20
    seconds = median(times) * clock_factor(work.plant, work.check)
    gb_s = 0.0 if fault else size * 2 * (ranks - 1) / ranks / seconds / 1e9
    pairs = {f"{order.via}>{order.others[0]}": gb_s * 8} if len(order.others) == 1 else {}
    looked = f"{backend} with {', '.join(order.others)}, {order.mib} MiB{f'; {fault}' if fault else ''}"
    readings = plants.spoil(work.plant, {"group_gb_s": gb_s})
    return Answer(clean(looked), readings, load_s=work.load_s, pairs=pairs)
