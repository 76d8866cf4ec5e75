"""How a request fails: refused by the server with a problem document (RFC 9457), or never answered."""

from collections.abc import Mapping
from typing import Any

NOT_ASKED, NOT_ANSWERED = -1, 0
"""An `ApiError`'s status where the address or its certificate file is none, and where nobody answered."""
MESSAGE_MAX = 4_000


class HostlerError(Exception):
    """Says `what` is wrong and where, and what to do `instead`."""

    def __init__(self, what: str, instead: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.instead = instead

    def __str__(self) -> str:
        return f"{self.what}\n  {self.instead}" if self.instead else self.what


class ApiError(HostlerError):
    """A request that failed. `status` is HTTP's, or one of those above; `problem` the document that came with it."""

    def __init__(self, status: int, what: str, instead: str = "", problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(what, instead)
        self.status = status
        self.problem = problem or {}

    @property
    def facts(self) -> dict[str, str]:
        """Facts of the problem by name: "approval", "brake" and so on."""
        facts = self.problem.get("facts")
        return {str(key): str(value) for key, value in facts.items()} if isinstance(facts, dict) else {}


class GoneError(ApiError):
    """The records that a stream should go on with are no longer there: list anew and go on from that."""


def refused(status: int, problem: Any, url: str) -> ApiError:
    """The error for an answer that is no success. `problem` is its JSON, or its text where it is none."""
    found = problem if isinstance(problem, dict) else {"detail": problem}
    what = str(found.get("detail") or found.get("error") or "").strip() or f"{url} answered {status}"
    places = "".join(f"\n  {_place(one)}" for one in found.get("problems") or () if isinstance(one, dict))
    instead = str(found.get("instead") or "")
    if status in (401, 403) and not instead:
        instead = "give --token-file FILE or HOSTLER_TOKEN; an administrator makes one with `hostler token create`"
    kind = GoneError if status == 410 else ApiError
    return kind(status, (what + places)[:MESSAGE_MAX], instead[:MESSAGE_MAX], found)


def _place(problem: Mapping[str, Any]) -> str:
    where = f"{problem.get('file', '')}:{problem['line']}" if problem.get("line") else problem.get("file", "")
    return f"{where}: {problem.get('what', '')}; {problem.get('instead', '')}"
