"""Dumps that an emulated BMC makes of itself, and the ways in which it fails to."""

from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct, field

from hostler.sim.bmc.emulated_machine import BmcRefusalError
from hostler.sim.bmc.resource_parts import ROOT, Document, collection, link, resource

Lie = Literal["", "no_entry", "fails", "gone", "page", "empty", "flood", "taskless"]
"""Fate of a dump: it is made; its task succeeds and no entry comes, or fails; its bytes are a 404, an error page under
200, none, or a gigabyte; or there is no task, and the entry comes all the same."""
FLOOD_PIECE, FLOOD_TIMES = b"\x00" * 2**20, 1024


class BmcDumps(Struct):
    """The dump log of one BMC: what a dump holds, how long it takes (s), and how the BMC lies about it."""

    manager: str
    content: bytes = b"\xfd7zXZ\x00 what the BMC knows of itself"
    takes_s: float = 0.0
    lie: Lie = ""
    kinds: tuple[str, ...] = ("Manager", "OEM")
    made: list[datetime] = field(default_factory=list)

    @property
    def place(self) -> str:
        """The log's path behind /redfish/v1."""
        return f"/Managers/{self.manager}/LogServices/Dump"

    def show(self, path: str, now: datetime) -> Document | None:
        """The resource at a path behind /redfish/v1, None where it is not of this log."""
        if path == f"/Managers/{self.manager}/LogServices":
            return collection(path, ["Dump"])
        if path == self.place:
            return resource(path, "#LogService.v1_4_0.LogService", "Dump", "Dumps") | {
                "Entries": link(f"{path}/Entries"),
                "Actions": {"#LogService.CollectDiagnosticData": self._action()},
            }
        if path == f"{self.place}/Entries":
            return collection(path, [str(n) for n in range(len(self.made)) if self._listed(n, now)])
        if path.startswith("/TaskService/Tasks/dump-"):
            return self._task(path, int(path.rpartition("-")[2]), now)
        member = path.removeprefix(f"{self.place}/Entries/")
        if member != path and member.isdigit() and int(member) < len(self.made):
            uri = f"{ROOT}{path}/attachment"
            return resource(path, "#LogEntry.v1_15_0.LogEntry", member, f"Dump {member}") | {"AdditionalDataURI": uri}
        return None

    def fetch(self, path: str) -> tuple[int, bytes, int] | None:
        """Status, bytes and how often they come, for the path of a dump's bytes; None for any other path."""
        if not (path.startswith(f"{ROOT}{self.place}/Entries/") and path.endswith("/attachment")):
            return None
        match self.lie:
            case "gone":
                return 404, b"", 1
            case "page":
                return 200, b"<!DOCTYPE html><html><body>Internal error</body></html>", 1
            case "empty":
                return 200, b"", 1
            case "flood":
                return 200, FLOOD_PIECE, FLOOD_TIMES
            case _:
                return 200, self.content, 1

    def collect(self, body: Document, now: datetime) -> str:
        """Begin a dump; its task's path, "" where there is none. Raises BmcRefusalError."""
        if body.get("DiagnosticDataType") not in self.kinds:
            raise BmcRefusalError(400, "DiagnosticDataType is not one of the acceptable values.")
        self.made.append(now)
        return "" if self.lie == "taskless" else f"{ROOT}/TaskService/Tasks/dump-{len(self.made) - 1}"

    def _listed(self, number: int, now: datetime) -> bool:
        done = now >= self.made[number] + timedelta(seconds=self.takes_s)
        return done and self.lie not in ("no_entry", "fails")

    def _action(self) -> Document:
        target = f"{ROOT}{self.place}/Actions/LogService.CollectDiagnosticData"
        return {"target": target, "DiagnosticDataType@Redfish.AllowableValues": list(self.kinds)}

    def _task(self, path: str, number: int, now: datetime) -> Document:
        ended = now >= self.made[number] + timedelta(seconds=self.takes_s)
        state = ("Exception" if self.lie == "fails" else "Completed") if ended else "Running"
        return resource(path, "#Task.v1_7_3.Task", path.rpartition("/")[2], "Dump") | {
            "TaskState": state,
            "TaskStatus": "OK",
            "Messages": [{"MessageId": "Dump.1.0.Note", "Message": "The dump partition is full."}],
        }
