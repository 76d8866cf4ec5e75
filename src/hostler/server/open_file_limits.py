"""Limit of this process's open files, sockets among them, and the share of client connections."""

import errno
import resource

MOST = 1_048_576
"""Limit to ask for where the system sets no end."""
RESERVE = 256
"""Files for everything but clients: the journal, BMCs, schedulers, notices; or a quarter, where that is more."""

OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""Errors of an open or accept for which the system had nothing left."""


def raise_limit() -> int:
    """Raise the soft limit to the hard one; how many files may be open now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY:
        return MOST
    if soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # some systems allow less than they say
            return soft
    return max(soft, wanted)


def for_connections(files: int) -> int:
    """Count the connections that clients may have of so many files."""
    return max(files - max(RESERVE, files // 4), files // 2)
