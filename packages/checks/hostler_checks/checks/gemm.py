"""Matrix products: how many a second, the same bits as peers, and sums that name what is wrong.

The sums are those of algorithm-based fault tolerance (Huang and Abraham, 1984).
"""

from typing import Any

import numpy as np

from hostler_checks.answers import Answer
from hostler_checks.float8 import Float8Products
from hostler_checks.work import Work, digest_of, median

SEED = 7
MAX_SHOWN = 4


def perf(work: Work) -> Answer:
    """Measure products a second in each number format, in TFLOP/s: 2n³ operations each."""
    n, dtypes = int(work.params["n"]), list(work.params["dtypes"])
    rng = np.random.default_rng(SEED)
    a, b = (rng.standard_normal((n, n), dtype=np.float32) for _ in "ab")
    readings: dict[str, float] = {}
    for dtype in dtypes:
        left, right = work.device.put(a, dtype), work.device.put(b, dtype)
        times = work.repeat(lambda left=left, right=right: left @ right, 1 / len(dtypes))  # type: ignore[misc]
        readings[f"{dtype}_tflops"] = 2 * n**3 / median(times) / 1e12
    return work.answer(f"products of {n} x {n} in {', '.join(dtypes)}", readings)


def golden(work: Work) -> Answer:
    """Hash the bits of a seeded product, and of the same product again at once."""
    n, dtype = int(work.params["n"]), str(work.params["dtype"])
    rng = np.random.default_rng(SEED)
    left, right = (work.device.put(rng.standard_normal((n, n), dtype=np.float32), dtype) for _ in "ab")
    first = digest_of(work.device, work.touched(left @ right, first=True))
    replays = {digest_of(work.device, work.touched(left @ right)) for _ in work.rounds(least=2)}
    return work.answer(f"bits of {dtype} products of {n} x {n}", digest=first, replays=tuple(sorted(replays))[:8])


def abft(work: Work) -> Answer:
    """Multiply whole numbers that fp32 holds exactly; a wrong element is in the wrong row and the wrong column."""
    n = int(work.params["n"])
    if n * 64 >= 1 << 24:
        return Answer(unable=f"n is at most 262143, so that fp32 sums are exact, not {n}")
    faults: list[str] = []
    rounds = work.rounds()
    for turn in rounds:
        rows, columns = _wrong(work, n, SEED + turn)
        if rows or columns:
            faults.append(f"product {turn}: {_named('row', rows)}, {_named('column', columns)}")
            break
    return work.answer(
        f"{rounds.count} exact products of {n} x {n}", {"products": float(rounds.count)}, faults=tuple(faults)
    )


def fp8(work: Work) -> Answer:
    """Measure products of 8-bit floats in TFLOP/s, each exact: factors are -1, 0 and 1.

    Tensor cores add up products of 8-bit floats with about 14 bits, so sums stay below 2**13.
    """
    n = int(work.params["n"])
    if n >= 1 << 13:
        return Answer(unable=f"n is at most {(1 << 13) - 1}, so that sums of 8-bit products are exact, not {n}")
    rng = np.random.default_rng(SEED)
    hosts = [rng.integers(-1, 2, (n, n)).astype(np.float32) for _ in "ab"]
    pair = Float8Products(work.device, *hosts)
    times = work.repeat(pair.product)
    product = work.device.host(work.touched(pair.product(), at=n * n // 2 + 1)).astype(np.float64)
    left, right = (one.astype(np.float64) for one in hosts)
    columns = np.nonzero(left.sum(0) @ right != product.sum(0))[0].tolist()
    rows = np.nonzero(left @ right.sum(1) != product.sum(1))[0].tolist()
    faults = (f"{_named('row', rows)}, {_named('column', columns)}",) if rows or columns else ()
    readings = {"fp8_tflops": 2 * n**3 / median(times) / 1e12}
    return work.answer(f"exact e4m3 products of {n} x {n}", readings, faults=faults)


def _wrong(work: Work, n: int, seed: int) -> tuple[list[int], list[int]]:
    """The rows and the columns of a product whose sums are not those of arithmetic."""
    xp, device = work.device.xp, work.device
    rng = np.random.default_rng(seed)
    left, right = (device.put(rng.integers(-8, 9, (n, n)).astype(np.float32)) for _ in "ab")
    product = work.touched(left @ right, at=seed * n // 2 + seed)
    left, right, product = (xp.astype(one, xp.float64) for one in (left, right, product))
    one = device.put(np.ones((1, n), dtype=np.float32), "fp64")
    column = xp.any((one @ left) @ right != one @ product, axis=0)
    row = xp.any(left @ (right @ one.T) != product @ one.T, axis=1)
    return _indices(device, row), _indices(device, column)


def _indices(device: Any, wrong: Any) -> list[int]:
    return [int(one) for one in np.nonzero(device.host(wrong))[0]]


def _named(what: str, found: list[int]) -> str:
    if not found:
        return f"no {what}"
    more = f" and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
    return f"{what} {', '.join(map(str, found[:MAX_SHOWN]))}{more}"
