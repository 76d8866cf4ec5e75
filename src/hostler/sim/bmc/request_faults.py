"""Rules that spoil chosen requests to an emulated BMC: counted, never random, so a failing run repeats exactly."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from msgspec import Struct

Json = object


class RequestFaultRule(Struct, frozen=True):
    """Selection of requests, and what happens to them.

    `path` and `system` are globs. The rule lets `skip` matching requests pass, then spoils `times` (0: all).
    `status` answers with it and does nothing; `drop` "before" loses the request, "after" does the work and loses
    the answer; `latency_s` delays the answer; `patch` changes the answered JSON as a merge patch (RFC 7396).
    """

    path: str = "*"
    method: str = "*"
    system: str = "*"
    status: int = 0
    drop: str = ""
    latency_s: float = 0.0
    patch: Mapping[str, Json] = {}
    skip: int = 0
    times: int = 1


class RequestFaults:
    """The rules in force, in order; the first that applies to a request is the one that spoils it."""

    def __init__(self, *rules: RequestFaultRule) -> None:
        self._rules: list[RequestFaultRule] = []
        self._seen: list[int] = []
        for rule in rules:
            self.add(rule)

    def add(self, rule: RequestFaultRule) -> None:
        """Put a rule in force behind the others."""
        self._rules.append(rule)
        self._seen.append(0)

    def clear(self) -> None:
        """The world is healed."""
        self._rules.clear()
        self._seen.clear()

    def spoil(self, method: str, path: str, system: str) -> RequestFaultRule | None:
        """The rule for this request, counted; None where it goes well."""
        for number, rule in enumerate(self._rules):
            if not _matches(rule, method, path, system):
                continue
            self._seen[number] += 1
            order = self._seen[number] - rule.skip
            if order >= 1 and (not rule.times or order <= rule.times):
                return rule
        return None


def merge(target: Json, patch: Json) -> Json:
    """JSON merge patch, RFC 7396: null deletes a key."""
    if not isinstance(patch, Mapping):
        return patch
    merged: dict[str, Json] = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def _matches(rule: RequestFaultRule, method: str, path: str, system: str) -> bool:
    return rule.method in {"*", method} and fnmatchcase(path, rule.path) and fnmatchcase(system, rule.system)
