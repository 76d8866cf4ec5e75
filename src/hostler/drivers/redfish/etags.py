"""State that a change names (If-Match), and what to name after a BMC has refused that, pure.

BMCs differ: some take no change without an etag, some compare weak ones, some show an empty one, and some show another
in the header than in the body.
"""

import re

from hostler.drivers.redfish.http_exchange import HttpResponse
from hostler.drivers.redfish.tolerant_json import WireError, document, text

_STRONG = re.compile(r'"?[!#-~]{1,200}"?')
"""Text that may appear in a header: a BMC's text must not become a second line of the request."""


def is_strong(etag: str) -> bool:
    """Whether it names one state exactly: weak ones (W/) match nothing (RFC 9110, 13.1.1), and "" is none."""
    return not etag.startswith("W/") and _STRONG.fullmatch(etag) is not None


def if_match(etag: str) -> dict[str, str]:
    """The header for an etag, none for ""."""
    return {"If-Match": etag} if etag else {}


def worth_naming(seen: HttpResponse, tried: str) -> list[str]:
    """After a refusal: the etags of body and header as strong ones; at last none, or any where none was tried."""
    try:
        told = text(document(seen.body), "@odata.etag")
    except WireError:
        told = ""
    shown = (etag.removeprefix("W/") for etag in (told, seen.headers.get("etag", "")))
    strong = [etag for etag in shown if is_strong(etag) and etag != tried]
    return [*dict.fromkeys(strong), "" if tried else "*"]
