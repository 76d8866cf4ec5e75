"""Budget of one look at one BMC, over all pages and resources together: bytes, values and members."""

from hostler.ports import ExcessError

ANSWER_VALUES = 300_000
"""Of one answer; decoding as many holds up the event loop for some tenth of a second. A page of 4,096 log entries has
fewer.
"""
LOOK_BYTES = 32 * 1024 * 1024
LOOK_VALUES = 1_500_000
LOOK_MEMBERS = 16_384


class ReadBudget:
    """Rest of one look's budget. Every call raises ExcessError once it is spent."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._bytes, self._values, self._members = LOOK_BYTES, LOOK_VALUES, LOOK_MEMBERS

    def answer(self, path: str, body: bytes) -> None:
        """Count an answer before it is decoded: its values are at most its commas, braces and brackets."""
        values = body.count(b",") + body.count(b"{") + body.count(b"[")
        if values > ANSWER_VALUES:
            raise self._exceeded(f"{path} has {values} values, {ANSWER_VALUES} are read")
        self._bytes -= len(body)
        self._values -= values
        if self._bytes < 0:
            raise self._exceeded(f"one look takes more than {LOOK_BYTES >> 20} MiB, {path} the last")
        if self._values < 0:
            raise self._exceeded(f"one look takes more than {LOOK_VALUES} values, {path} the last")

    def members(self, path: str, number: int) -> None:
        """Count a page's members."""
        self._members -= number
        if self._members < 0:
            raise self._exceeded(f"one look takes more than {LOOK_MEMBERS} members, {path} the last")

    def _exceeded(self, what: str) -> ExcessError:
        return ExcessError(
            f"{self._origin} shows more than is read of one BMC: {what}; clear its event log, or update its firmware"
        )
