"""Every listener of `serve` is guarded: connections are accepted in one module, which has the table."""

import re
from pathlib import Path
from typing import get_args

from hostler.server.connection_limits import ListenerName
from tests.adversary.test_listeners import LISTENERS

HOUSE = Path(__file__).parents[2] / "src" / "hostler"
LISTENS = re.compile(
    r"\b(create_server|create_unix_server|start_server|start_unix_server|connect_accepted_socket|TCPSite|SockSite|UnixSite|"
    r"AppRunner|HTTPServer|ThreadingHTTPServer|create_datagram_endpoint|socketserver)\b|\.(listen|accept)\("
)
GUARDED = {"server/guarded_listener.py"}
OTHERS = {
    "journal/postgres.py": "an event of SQLAlchemy's",
    "journal/sqlite.py": "an event of SQLAlchemy's",
}
"""Modules that use such a word and are no listener of `serve`."""


def test_nothing_listens_but_the_guarded_listener() -> None:
    """Mutant: a new listener by `asyncio.start_server`. It is one by `guarded`, and is attacked beside the others."""
    rooms = (path for path in HOUSE.rglob("*.py") if path.relative_to(HOUSE).parts[0] != "sim")
    found = {str(path.relative_to(HOUSE)) for path in rooms if LISTENS.search(path.read_text())}
    assert sorted(found - GUARDED - set(OTHERS)) == [], "listen by server/guarded_listener"
    assert set(OTHERS) <= found, "it listens no longer: take its row away"


def test_each_listener_is_attacked() -> None:
    """Mutant: a sixth name in `ListenerName` (types allow no table under another) that no attack knows."""
    assert set(get_args(ListenerName)) == set(LISTENERS)
