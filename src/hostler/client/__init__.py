"""Client of the API, for programs and for the command line: `Client` asks, `answers` are the types of what comes back.

Needs the standard library and msgspec. `Client` is loaded when it is asked for: its TLS costs a command line more time
than the errors do.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hostler.client.errors import ApiError, GoneError, HostlerError

if TYPE_CHECKING:
    from hostler.client.api import Address, Client

__all__ = ["Address", "ApiError", "Client", "GoneError", "HostlerError"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(name)
    return getattr(import_module("hostler.client.api"), name)
