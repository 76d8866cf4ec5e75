"""Growth of counters within the last hour, kept in a few numbers each."""

HOUR_S = 3_600.0
STEP_S = 300.0
MAX_COUNTERS = 4_096


class Growth:
    """Follows counters by name. One that goes back was reset, and counts from there."""

    def __init__(self) -> None:
        self._seen: dict[str, list[tuple[float, int]]] = {}
        self._last: dict[str, int] = {}

    def per_hour(self, name: str, count: int, now_s: float, begin: int | None = None) -> int:
        """The growth since an hour ago; finer than STEP_S nothing is remembered.

        A counter seen for the first time has not grown, unless `begin` says where it stood before: devices that have
        nothing to tell are not listed.
        """
        if name not in self._seen and len(self._seen) >= MAX_COUNTERS:
            return 0
        seen = self._seen.setdefault(name, [(now_s, count if begin is None else begin)])
        if count < self._last.get(name, count):
            seen[:] = [(now_s, count)]
        self._last[name] = count
        if now_s - seen[-1][0] >= STEP_S:
            seen.append((now_s, count))
        while len(seen) > 1 and now_s - seen[1][0] >= HOUR_S:
            del seen[0]
        return max(0, count - seen[0][1])
