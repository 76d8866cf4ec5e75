"""How a command says that it failed: what, what to do instead, and the exit status."""

from hostler.cli.exit_codes import ExitCode


class CommandError(Exception):
    """The command ends here. `what` says what is wrong and where, `instead` what to do; `detail` is the server's."""

    def __init__(self, code: ExitCode, what: str, instead: str = "", detail: dict[str, str] | None = None) -> None:
        super().__init__(what)
        self.detail = detail or {}
        self.code = code
        self.what = what
        self.instead = instead

    def __str__(self) -> str:
        return f"{self.what}\n  {self.instead}" if self.instead else self.what


class GoneError(CommandError):
    """The records that a stream should go on with are no longer there: list anew and go on from that."""


def unusable(what: str, instead: str = "") -> CommandError:
    """The error for input that cannot be used."""
    return CommandError(ExitCode.usage, what, instead)
