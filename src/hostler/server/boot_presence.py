"""How the boot listeners' process is, as people and metrics are told."""

from datetime import datetime

from hostler.server.connection_limits import ListenerCounts


class BootPresence:
    """Whether the process is up, since when, and why not; how often it was started again; its listeners' numbers."""

    def __init__(self) -> None:
        self.up = False
        self.why = ""
        self.since: datetime | None = None
        self.restarts = 0
        self.counts: tuple[ListenerCounts, ...] = ()
        self.exhausted = 0

    def told(self) -> str:
        """A few words: "up", or that it is down, since when and why."""
        if self.up:
            return "up"
        since = f" since {self.since:%Y-%m-%dT%H:%M:%SZ}" if self.since is not None else ""
        return f"down{since}: the boot listeners' process {self.why}; it is started again by itself"
