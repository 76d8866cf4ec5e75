"""Every outgoing connection goes through `runtime/reachable_addresses`: drivers are counted, by how they connect."""

import ast
import re
from functools import cache
from pathlib import Path

HOUSE = Path(__file__).parents[2] / "src" / "hostler"
OPENERS = {
    "ClientSession", "TCPConnector", "open_connection", "create_connection", "sock_connect", "getaddrinfo", "urlopen",
    "HTTPConnection", "HTTPSConnection", "SMTP", "SMTP_SSL", "connect", "connect_ex", "Apprise", "ws_connect",
    "Session", "sendto", "TCPSocket", "socket",
}  # fmt: skip
"""Names by whose call a connection may be opened."""
ROOMS = ("drivers", "server", "app", "runtime", "polling", "journal")
JUDGED = {
    "runtime/reachable_addresses.py": "the one place",
    "drivers/target_http.py": "connector(ReachableNetworks(networks))",
    "drivers/checked_requests.py": "checked_pools: the reached peer",
    "drivers/netbox/client.py": "checked_pools: the reached peer",
    "drivers/ironic/keystone_tokens.py": "site_requests",
    "drivers/notify/mail.py": "allowed_addresses, and connects to the address that was judged",
    "drivers/notify/apprise_target.py": "every socket.connect within a delivery",
    "drivers/redfish/connection_pool.py": "connector(NamedHosts)",
    "drivers/redfish/shown_certificate.py": "connected(site)",
    "drivers/redfish/firmware_images.py": "connector(site)",
    "drivers/slurm/rest_transport.py": "connector(site)",
    "drivers/infiniband/ufm_client.py": "connector(site)",
    "drivers/kubernetes/kube_api.py": "connector(site)",
    "server/oidc_provider.py": "connector(ReachableNetworks(networks)), the issuer by site_session",
    "server/standby_proxy.py": "connector(NamedHosts)",
}
"""Modules that open connections, and by which judgement."""
WITHOUT = {
    "app/first_start.py": "a SQLite file",
    "journal/reading_files.py": "DuckDB, over files",
    "server/guarded_listener.py": "listens",
    "server/boot/listener_process.py": "listens at sockets that it was given",
    "server/token_storage.py": "a SQLite file",
    "journal/postgres.py": "the cell's own database, by its URL on the command line",
    "journal/sqlite.py": "a SQLite file",
}
"""Modules that call such a name and reach nobody by an address that was told."""


CALLED = re.compile(rf"\b(?:{'|'.join(sorted(OPENERS))})\(")


@cache
def openers() -> dict[str, tuple[tuple[str, ast.Call], ...]]:
    """Modules of the rooms that open connections, with the names that they call for it."""
    found: dict[str, tuple[tuple[str, ast.Call], ...]] = {}
    for path in (path for room in ROOMS for path in sorted((HOUSE / room).rglob("*.py"))):
        text = path.read_text()
        if CALLED.search(text):
            calls = tuple((name, node) for node in ast.walk(ast.parse(text)) if (name := _called(node)) in OPENERS)
            if calls:
                found[str(path.relative_to(HOUSE))] = calls  # type: ignore[assignment]
    return found


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def test_every_module_that_opens_connections_is_known_by_its_judgement() -> None:
    """Mutant: a new driver with a ClientSession of its own. It is named here, and has its case beside the others."""
    found = set(openers())
    assert sorted(found - set(JUDGED) - set(WITHOUT)) == [], "judge it by runtime/reachable_addresses"
    assert sorted((set(JUDGED) | set(WITHOUT)) - found) == [], "it opens nothing any more: take its row away"


def test_no_client_session_has_a_connector_of_its_own() -> None:
    """Mutant: `aiohttp.ClientSession()` or `aiohttp.TCPConnector(…)`, which ask any address."""
    for module, calls in openers().items():
        for name, node in calls if module != "runtime/reachable_addresses.py" else ():
            assert name != "TCPConnector", module
            if name == "ClientSession":
                assert any(one.arg == "connector" for one in node.keywords), (module, node.lineno)
