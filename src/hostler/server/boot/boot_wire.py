"""Messages between the boot network's listener and the controller: one request, one answer.

The listener knows HTTP and files; the controller knows nodes, secrets and which file may be had. Nothing here opens a
boot: the listener's process has neither the key of boots nor the journal.
"""

from collections.abc import Awaitable, Callable

from msgspec import Struct

BY_MAC = "/ipxe"
FIRST = "/n/{node}/{secret}/boot.efi"
AUTOEXEC = "/n/{node}/{secret}/autoexec.ipxe"
MEDIUM = "/n/{node}/{secret}/{medium}"
LOADER = "/loader/{arch}.efi"
SCRIPT = "/n/{node}/{secret}/script"
DOCUMENT = "/n/{node}/{secret}/ci/{document}"
HOME = "/n/{node}/{secret}/home"
ENROL = "/n/{node}/{secret}/enrol"
IMAGE = "/images/{path}"


class BootQuestion(Struct, frozen=True):
    """A request of the boot network. `route` is one of those above; `name` is the route's last part, where it has one.

    `address` is the machine's, `origin` how it called the listener. `mac`, `serial` and `arch` are what its query
    shows, `mac` None where it does not say.
    """

    route: str
    address: str
    origin: str = ""
    node: str = ""
    secret: str = ""
    name: str = ""
    mac: str | None = None
    serial: str = ""
    arch: str = ""
    by_ipxe: bool = False
    body: bytes = b""


class FileIdentity(Struct, frozen=True):
    """A file's contents as they were verified: another file, or one written since, differs in one of these.

    `changed_ns` is the inode's change time: nobody can set that back, as they can the time of the last write.
    """

    inode: int
    size: int
    changed_ns: int


class SentFile(Struct, frozen=True):
    """A file to send. `identity` None: it is a boot medium, with `script` laid over it at `places`."""

    path: str
    media_type: str
    identity: FileIdentity | None = None
    size: int = 0
    script: bytes = b""
    places: tuple[int, ...] = ()


class BootAnswer(Struct, frozen=True):
    """The answer: a text, or a file. `again_s`: the machine is to ask again after so long, 0 where that is not said."""

    status: int
    text: str = ""
    file: SentFile | None = None
    again_s: float = 0.0


def ask_again(again_s: float = 5.0) -> BootAnswer:
    """The answer where none can be had now."""
    return BootAnswer(503, "ask again", again_s=again_s)


Answerer = Callable[[BootQuestion], Awaitable[BootAnswer]]
"""Answers the boot network's listener: the controller itself, or the way to it from another process."""
