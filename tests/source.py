"""The house's own code as syntax, for tests that read rules from it: parsed once a process, in the group "source"."""

import gc
from functools import cache

from hostler.cli.reference import messages
from hostler.cli.reference.text_templates import Sources


@cache
def sources() -> Sources:
    """Every module of `hostler`; what stays to the end is kept out of the garbage collector's passes."""
    found = messages.parsed()
    gc.freeze()
    return found
