"""The HTTP application: routes, their guards, strict bodies, and one way of saying no."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from litestar import Litestar, Request, Router
from litestar.config.compression import CompressionConfig
from litestar.di import Provide
from litestar.middleware import DefineMiddleware
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme

from hostler.core.state.live_state import Release
from hostler.core.state.scopes import TEXTS
from hostler.server import problems
from hostler.server.agent_mailbox import AgentMailboxes
from hostler.server.app_state import AppState, Outside
from hostler.server.audit_requests import AuditRequests
from hostler.server.body_codec import RedactedResponse, StrictRequest
from hostler.server.cell_view import CellView
from hostler.server.dependencies import Reporter
from hostler.server.event_stream import NOT_COMPRESSED
from hostler.server.load_shedding import AdmissionFence
from hostler.server.middleware import AudienceFence, HostFence, RequestIds, StandbyFence, TraceRequests, add_headers
from hostler.server.openapi import DescriptionFence, DescriptionPlugin, ScopeDescription
from hostler.server.paging import selection
from hostler.server.query_keys import KnownKeys, QueryFence
from hostler.server.request_counters import CountRequests
from hostler.server.routes import (
    agent_meetings,
    agent_reports,
    approvals,
    audit,
    backtests,
    bmc_certificates,
    bmc_credentials,
    bring_up,
    checklists,
    console_files,
    descriptions,
    domains,
    drills,
    evidence,
    expected_nodes,
    fabric_designs,
    fabric_pages,
    fabrics,
    fleet_map,
    flow,
    goldens,
    health,
    incidents,
    intents,
    jobs,
    listings,
    machine_work,
    maintenance,
    manual_tests,
    node_stories,
    nodes,
    notifications,
    pair_results,
    parts,
    providers,
    racks,
    records,
    restore,
    rma_cases,
    sign_in,
    sku_manifests,
    statements,
    ticket_files,
    ticket_people,
    trends,
    verbs,
)
from hostler.server.routes import cell as cell_routes
from hostler.server.server_settings import Settings
from hostler.server.tokens import Identity, TokenStore

ROUTERS = (
    nodes.router,
    node_stories.router,
    fleet_map.router,
    sku_manifests.router,
    evidence.router,
    checklists.router,
    listings.router,
    maintenance.router,
    jobs.router,
    incidents.router,
    domains.router,
    racks.router,
    expected_nodes.router,
    fabrics.router,
    fabric_designs.router,
    fabric_pages.router,
    manual_tests.router,
    pair_results.router,
    parts.router,
    ticket_files.router,
    ticket_people.router,
    restore.router,
    goldens.router,
    rma_cases.router,
    cell_routes.router,
    records.router,
    intents.router,
    approvals.router,
    backtests.router,
    bmc_certificates.router,
    drills.router,
    machine_work.router,
    providers.router,
    bmc_credentials.router,
    notifications.router,
    trends.router,
    flow.router,
    statements.router,
    bring_up.router,
    audit.router,
    verbs.router,
    agent_meetings.router,
    agent_reports.router,
)
"""Routers of everything under /v1."""

BODY_MAX = 1024 * 1024
"""Bytes of a request's body, where its route says nothing else."""

COMPRESSION = CompressionConfig(
    backend="gzip", gzip_compress_level=1, minimum_size=1_400, exclude_opt_key=NOT_COMPRESSED
)
"""The fastest level, since answers are made on the server's loop; what fits one packet goes as it is."""


def create_app(
    cell: CellView, tokens: TokenStore, mailboxes: AgentMailboxes, settings: Settings, outside: Outside | None = None
) -> Litestar:
    """The application over a running cell. Nothing is started: see `serve`."""
    app_state = AppState(cell, tokens, mailboxes, settings)
    app_state.outside = outside or Outside()
    app = build_routes()
    serve_cell(app, app_state)
    return app


def serve_cell(app: Litestar, app_state: AppState) -> None:
    """Put a cell behind routes that serve none now."""
    app.state["app_state"] = app_state


def build_routes() -> Litestar:
    """The routes alone, without a cell: most of the time that an application takes to make.

    Everything that belongs to a cell is read from the application's state while a request is answered, so the same
    routes may serve one cell after another.
    """
    description = DescriptionPlugin(path="/openapi.json")
    return Litestar(
        route_handlers=[
            Router(path="/v1", route_handlers=[*ROUTERS]),
            sign_in.router,
            *health.handlers,
            *descriptions.handlers,
            *console_files.handlers,
        ],
        dependencies={
            "app_state": Provide(_app_state, sync_to_thread=False),
            "who": Provide(_who, sync_to_thread=False),
            "stands": Provide(_stands, sync_to_thread=False),
            "wanted": Provide(selection, sync_to_thread=False),
            "agent": Provide(_reporter, sync_to_thread=False),
            "caller": Provide(intents.caller, sync_to_thread=False),
        },
        request_class=StrictRequest,
        response_class=RedactedResponse,
        type_encoders=dict.fromkeys(TEXTS, str),
        plugins=[ScopeDescription()],
        request_max_body_size=BODY_MAX,
        middleware=[
            DefineMiddleware(CountRequests),
            DefineMiddleware(AuditRequests),
            DefineMiddleware(RequestIds),
            DefineMiddleware(TraceRequests),
            DefineMiddleware(HostFence),
            DefineMiddleware(AudienceFence),
            DefineMiddleware(AdmissionFence),
            DefineMiddleware(QueryFence, known=KnownKeys()),
            DefineMiddleware(StandbyFence),
            DefineMiddleware(DescriptionFence, plugin=description),
        ],
        before_send=[add_headers],
        compression_config=COMPRESSION,
        lifespan=[_beside],
        exception_handlers=problems.HANDLERS,
        openapi_config=_openapi(description),
        logging_config=None,
        debug=False,
    )


@asynccontextmanager
async def _beside(app: Litestar) -> AsyncIterator[None]:
    """Records are counted and requests audited for as long as the server runs."""
    app_state: AppState = app.state["app_state"]
    trail = app_state.outside.audit
    running = [app_state.counted.run(), *([trail.run()] if trail is not None else [])]
    tasks = [asyncio.create_task(one) for one in running]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _app_state(request: Request[Any, Any, Any]) -> AppState:
    found: AppState = request.app.state["app_state"]
    return found


def _stands(request: Request[Any, Any, Any]) -> int:
    """The number of the record up to which the fleet stands as it is shown."""
    return _app_state(request).cell.view.cell.seq


def _who(request: Request[Any, Any, Any]) -> Identity:
    """The caller, as the route's guard found out."""
    who = request.scope.get("user")
    assert isinstance(who, Identity), "every route that asks who calls has a guard"
    return who


def _reporter(request: Request[Any, Any, Any]) -> Reporter:
    """The agent that calls."""
    return Reporter(_app_state(request), _who(request))


def _openapi(description: DescriptionPlugin) -> OpenAPIConfig:
    """The API's own description, as JSON only: renderers would fetch from elsewhere."""
    return OpenAPIConfig(
        title="Hostler",
        version=Release().version,
        path="/schema",
        render_plugins=[description],
        use_handler_docstrings=True,
        components=Components(security_schemes={"token": SecurityScheme(type="http", scheme="bearer")}),
        security=[{"token": []}],
    )
