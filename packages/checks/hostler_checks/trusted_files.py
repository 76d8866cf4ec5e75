"""Files of a site that the suite runs as its own user: nobody else may have written them."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path


class UntrustedError(ValueError):
    """A file or folder that others could have changed; the message says what to do."""


def refuse_untrusted(places: Iterable[Path], owner: int) -> None:
    """Raise UntrustedError for a link, and for what belongs to others than `owner` and root or is writable by them."""
    for place in places:
        found = os.lstat(place)
        if stat.S_ISLNK(found.st_mode) or found.st_uid not in (owner, 0):
            raise UntrustedError(f"{place}: it is a link, or belongs to user {found.st_uid}, not to root")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise UntrustedError(f"{place}: others than its owner may write it; chmod go-w")
