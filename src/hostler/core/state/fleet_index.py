"""The fleet's index: members by key under an overlay, so that no decision walks 100,000 nodes."""

from collections.abc import Collection


class Index:
    """Members by key, with an overlay like a table's. Members are listed sorted: order never depends on history.

    A key's only member stands in `base` by itself: most keys are a node's own names, and a dict takes 200 bytes.
    """

    def __init__(self) -> None:
        self.base: dict[str, dict[str, None] | str] = {}
        self.over: dict[str, dict[str, bool]] = {}

    def add(self, key: str, member: str) -> None:
        """Add the member under the key."""
        self.over.setdefault(key, {})[member] = True

    def remove(self, key: str, member: str) -> None:
        """Remove the member from the key; nothing where it is not there."""
        self.over.setdefault(key, {})[member] = False

    def count(self, key: str) -> int:
        """Number of members under the key."""
        base = self.committed(key)
        change = sum(live - (member in base) for member, live in self.over.get(key, {}).items())
        return len(base) + change

    def members(self, key: str) -> list[str]:
        """Members under the key, sorted."""
        base, over = self.committed(key), self.over.get(key)
        if over is None:
            return sorted(base)
        found = [member for member in base if over.get(member, True)]
        found.extend(m for m, live in over.items() if live and m not in base)
        return sorted(found)

    def committed(self, key: str) -> Collection[str]:
        """Members under the key as of the last commit, in no order that means anything."""
        found = self.base.get(key, ())
        return (found,) if isinstance(found, str) else found

    def lacks(self, key: str) -> bool:
        """Certainly without members; told without counting."""
        return key not in self.base and key not in self.over

    def keys(self) -> list[str]:
        """Keys that have members, sorted."""
        return sorted(key for key in {**self.base, **self.over} if self.count(key))

    def merge(self) -> None:
        """Make what the step has changed permanent."""
        for key, changes in self.over.items():
            members = self.committed(key)
            if not isinstance(members, dict):
                members = dict.fromkeys(members)
            for member, live in changes.items():
                if live:
                    members[member] = None
                else:
                    members.pop(member, None)
            if members:
                self.base[key] = members if len(members) > 1 else next(iter(members))
            else:
                self.base.pop(key, None)
        self.over.clear()

    def drop(self) -> None:
        """Forget what the step has changed."""
        self.over.clear()
