"""How a command ends: the numbers that scripts may rely on."""

from enum import IntEnum


class ExitCode(IntEnum):
    """A process's exit status. `MEANINGS` says each in words, for people and for the reference."""

    ok = 0
    unexpected = 1
    usage = 2
    refused = 3
    not_found = 4
    unavailable = 5
    unauthorised = 6
    unsound = 7
    waits = 8
    interrupted = 130
    closed_pipe = 141


MEANINGS: dict[ExitCode, str] = {
    ExitCode.ok: "done, or asked for and granted",
    ExitCode.unexpected: "an error of Hostler itself",
    ExitCode.usage: "the command line or an input file is wrong; nothing was done",
    ExitCode.refused: "understood and refused; the message says why and what to do",
    ExitCode.not_found: "what was named is not there",
    ExitCode.unavailable: "the server is out of reach or busy; the same command may work later",
    ExitCode.unauthorised: "no token, a wrong one, or one whose role does not allow it",
    ExitCode.unsound: "what was checked is not sound: rules violated in a simulation, or a damaged journal",
    ExitCode.waits: "asked for, and waits for a second person, or, after --wait-s, for what the table names",
    ExitCode.interrupted: "ended with Ctrl-C",
    ExitCode.closed_pipe: "whoever read the output stopped reading",
}
