"""How a command says that it failed: what, what to do instead, and the exit status."""

from hostler.cli.exit_codes import ExitCode
from hostler.client import ApiError, HostlerError

_CODES: dict[int, ExitCode] = {
    -1: ExitCode.usage,
    0: ExitCode.unavailable,
    401: ExitCode.unauthorised,
    403: ExitCode.unauthorised,
    404: ExitCode.not_found,
    409: ExitCode.refused,
    410: ExitCode.refused,
    429: ExitCode.unavailable,
    502: ExitCode.unavailable,
    503: ExitCode.unavailable,
    504: ExitCode.unavailable,
}


class CommandError(HostlerError):
    """The command ends here."""

    def __init__(self, code: ExitCode, what: str, instead: str = "") -> None:
        super().__init__(what, instead)
        self.code = code


def unusable(what: str, instead: str = "") -> CommandError:
    """The error for input that cannot be used."""
    return CommandError(ExitCode.usage, what, instead)


def code_of(error: HostlerError) -> ExitCode:
    """The exit status for a failure. What the server refuses and no row names was asked wrongly."""
    if isinstance(error, CommandError):
        return error.code
    status = error.status if isinstance(error, ApiError) else 1
    return _CODES.get(status, ExitCode.usage if 400 <= status < 500 else ExitCode.unexpected)
