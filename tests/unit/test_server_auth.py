"""Rights of each role, row by row; and that every route has a guard."""

from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.facts import Permission
from hostler.journal.memory import MemoryJournal
from hostler.runtime.runner import Cell
from hostler.server.agent_mailbox import AgentMailboxes
from hostler.server.app import create_app
from hostler.server.auth import MAY, identify, may
from hostler.server.middleware import name_of
from hostler.server.problems import ProblemError
from hostler.server.routes.console_files import PAGES
from hostler.server.server_settings import Settings, UnsafeListenError, is_loopback
from hostler.server.tokens import Grant, Identity, Role, TokenStore

P = Permission

ROWS = {
    (Role.operator, P.see): True, (Role.operator, P.see_cell): True, (Role.operator, P.disturb): True,
    (Role.operator, P.work): True, (Role.operator, P.operate): True, (Role.operator, P.enrol): True,
    (Role.operator, P.withdraw): True, (Role.operator, P.answer): False,
    (Role.operator, P.configure): True, (Role.operator, P.report): False,
    (Role.technician, P.see): True, (Role.technician, P.see_cell): True, (Role.technician, P.disturb): False,
    (Role.technician, P.work): True, (Role.technician, P.operate): False, (Role.technician, P.enrol): False,
    (Role.technician, P.withdraw): True, (Role.technician, P.answer): False,
    (Role.technician, P.configure): False, (Role.technician, P.report): False,
    (Role.tenant, P.see): True, (Role.tenant, P.see_cell): False, (Role.tenant, P.disturb): True,
    (Role.tenant, P.work): False, (Role.tenant, P.operate): False, (Role.tenant, P.enrol): False,
    (Role.tenant, P.withdraw): True, (Role.tenant, P.answer): True,
    (Role.tenant, P.configure): False, (Role.tenant, P.report): False,
    (Role.viewer, P.see): True, (Role.viewer, P.see_cell): True, (Role.viewer, P.disturb): False,
    (Role.viewer, P.work): False, (Role.viewer, P.operate): False, (Role.viewer, P.enrol): False,
    (Role.viewer, P.withdraw): False, (Role.viewer, P.answer): False,
    (Role.viewer, P.configure): False, (Role.viewer, P.report): False,
    (Role.agent, P.see): False, (Role.agent, P.see_cell): False, (Role.agent, P.disturb): False,
    (Role.agent, P.work): False, (Role.agent, P.operate): False, (Role.agent, P.enrol): False,
    (Role.agent, P.withdraw): False, (Role.agent, P.answer): False,
    (Role.agent, P.configure): False, (Role.agent, P.report): True,
}  # fmt: skip


def who(role: Role, **narrowed: str) -> Identity:
    needed = {Role.tenant: {"tenant": "acme"}, Role.agent: {"node": "n1"}}.get(role, {})
    return Identity("t1", replace(Grant("x", role), **needed, **narrowed))


@pytest.mark.parametrize(("role", "permission"), [(r, p) for r in Role for p in Permission])
def test_each_role_has_each_permission_or_not(role: Role, permission: Permission) -> None:
    """Mutant: give any role any permission more, or take one away; exactly one row fails."""
    assert may(who(role), permission) is ROWS[role, permission]


@pytest.mark.parametrize("permission", [P.see_cell, P.enrol, P.configure])
@pytest.mark.parametrize("narrowed", [{"site": "ams"}, {"pool": "alpha"}])
def test_a_narrowed_operator_has_nothing_that_concerns_the_whole_cell(
    permission: Permission, narrowed: dict[str, str]
) -> None:
    assert not may(who(Role.operator, **narrowed), permission)
    assert may(who(Role.operator, **narrowed), P.disturb)


def test_every_role_has_its_permissions() -> None:
    assert set(MAY) == set(Role)


def test_the_technicians_verbs() -> None:
    assert {v for v, kind in VERBS.items() if kind.facts.asks is P.work} == {
        "certify", "start-work", "end-work", "rma-return", "close-ticket", "validate-fabric", "power-off",
        "walk-findings", "tick-stop",
        "claim-ticket", "hand-over-ticket", "locate", "unlocate",
        "enter-manual-test", "sign-manual-test", "tick-manual-test", "add-manual-test-file", "add-ticket-file",
        "advance-rma", "edit-rma", "count-stock", "tick-item", "add-item-file", "fail-inspection",
            "rack-certify", "asset-sound",
    }  # fmt: skip


CONSOLE = {path for page in PAGES for path in (f"/{page}", f"/{page}/{{name:path}}")}
PUBLIC = {
    "/",
    "/console/{name:path}",
    "/healthz",
    "/readyz",
    "/schema",
    "/schema/{path}",
    "/schema/openapi.json",
    "/schema/asyncapi.json",
}
PUBLIC |= {"/sign-in", "/sign-in/ways", "/sign-in/callback", "/sign-in/out"}


def test_no_route_stands_without_a_guard(tmp_path: Path) -> None:
    """Mutant: drop `guards=` from any route."""
    tokens = TokenStore(tmp_path / "t.sqlite")
    cell = Cell(MemoryJournal(), {})
    app = create_app(cell, tokens, AgentMailboxes(lambda: 0), Settings())
    open_paths = set()
    for route in app.routes:
        for handler in cast("Any", route).route_handlers:
            if not handler.resolve_guards() and handler.http_methods != {"OPTIONS"}:
                open_paths.add(route.path_format.replace("{name}", "{name:path}"))
    assert open_paths <= PUBLIC | CONSOLE
    assert len(app.routes) > 40
    tokens.close()


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer hst_x", "bearer\x00"])
async def test_no_token_is_answered_with_what_to_send(tmp_path: Path, header: str) -> None:
    tokens = TokenStore(tmp_path / "t.sqlite")
    with pytest.raises(ProblemError) as refused:
        await identify(tokens, header)
    assert refused.value.status == 401
    assert "Bearer" in refused.value.headers["WWW-Authenticate"]
    tokens.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.5", "hostler.example"])
def test_plain_http_on_the_network_does_not_start(host: str) -> None:
    with pytest.raises(UnsafeListenError, match="insecure-plain-http"):
        Settings(host=host).check()
    Settings(host=host, insecure_plain_http=True).check()
    Settings(host=host, tls_certificate=Path("c"), tls_key=Path("k")).check()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
def test_loopback_needs_no_tls(host: str) -> None:
    assert is_loopback(host)
    Settings(host=host).check()


def test_a_certificate_without_its_key_does_not_start() -> None:
    with pytest.raises(UnsafeListenError, match="both"):
        Settings(tls_certificate=Path("c")).check()


@pytest.mark.parametrize(
    ("header", "name"),
    [("LOCALHOST:80", "localhost"), ("[::1]:80", "::1"), ("a.b", "a.b"), ("", ""), ("[", "")],
)
def test_the_name_in_a_host_header(header: str, name: str) -> None:
    assert name_of(header) == name
