"""Permissions: the table of roles, and the guard that stands before every route. Verbs: `core.state.verbs`."""

from collections.abc import Awaitable, Callable
from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Scope

from hostler.core.state.verbs.facts import Permission
from hostler.server.problems import ProblemError, problem_details, refuse
from hostler.server.session_cookie import authorization
from hostler.server.tokens import Identity, Role, TokenStore

_P = Permission

MAY: dict[Role, frozenset[Permission]] = {
    Role.operator: frozenset(
        {_P.see, _P.see_cell, _P.disturb, _P.withdraw, _P.work, _P.operate, _P.enrol, _P.configure}
    ),
    Role.technician: frozenset({_P.see, _P.see_cell, _P.withdraw, _P.work}),
    Role.tenant: frozenset({_P.see, _P.disturb, _P.withdraw, _P.answer}),
    Role.viewer: frozenset({_P.see, _P.see_cell}),
    Role.agent: frozenset({_P.report}),
}
"""Role → permissions. `see`: nodes and what hangs on them, as far as the token reaches. `see_cell`: what concerns the
whole cell. `disturb`: remedies and cordons on nodes within reach (a tenant's own). `withdraw`: call off what was asked
for; of a technician and a tenant, what they asked for themselves. `work`: a technician's verbs.
`answer`: a tenant's word on maintenance of its nodes. `operate`: every other verb. `report`: the agent's side, for its
own node."""

_WHOLE_ONLY = frozenset({_P.see_cell, _P.enrol, _P.configure})
"""Permissions that a token narrowed to a site or pool never has: they concern the cell as a whole."""


def may(who: Identity, permission: Permission) -> bool:
    """Tell whether the token carries the permission at all; `token_scope` decides how far it reaches."""
    if permission in _WHOLE_ONLY and not who.whole:
        return False
    return permission in MAY[who.role]


Guard = Callable[[ASGIConnection[Any, Any, Any, Any], BaseRouteHandler], Awaitable[None]]


def needs(permission: Permission) -> Guard:
    """The guard of a route: authenticates before a byte of the body is read, then asks for the permission."""

    async def guard(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        scope = connection.scope
        who = await authenticate(scope, connection.app.state["app_state"].tokens)
        demand(who, permission)

    return guard


SEE = [needs(Permission.see)]
SEE_CELL = [needs(Permission.see_cell)]
"""The guards of most routes."""


ON_PERSON = "on_person"
"""Key of a request's state: what is called once its sender is known to be a person, or what acts for one."""


async def authenticate(scope: Scope, tokens: TokenStore) -> Identity:
    """Authenticate the sender of this request once; its connection counts as the sender's from now on.

    Raises ProblemError: 401, and 503 where that identity has as many connections as it may.
    """
    known = scope.get("user")
    if isinstance(known, Identity):
        return known
    who = await identify(tokens, authorization(scope))
    connection = scope.get("state", {}).get("connection")
    if connection is not None and not connection.recognised(who):
        what = f"{who.name} has as many connections open as it may"
        problem = problem_details(503, "busy", what, "close some, or use them again")
        raise ProblemError(problem, {"Retry-After": "1", "Connection": "close"})
    scope["user"] = who
    on_person = scope.get("state", {}).get(ON_PERSON)
    if on_person is not None and who.role is not Role.agent:
        on_person()
    return who


async def identify(tokens: TokenStore, header: str) -> Identity:
    """Identify the sender from this Authorization header. Raises ProblemError (401)."""
    scheme, _, token = header.partition(" ")
    who = await tokens.recognise(token.strip()) if scheme.lower() == "bearer" else None
    if who is None:
        what = "the token is unknown, revoked or expired" if token else "no token was sent"
        instead = "send 'Authorization: Bearer hst_…'; an operator makes one with `hostler token create`"
        problem = problem_details(401, "unauthenticated", what, instead)
        raise ProblemError(problem, {"WWW-Authenticate": 'Bearer realm="hostler"'})
    return who


def demand(who: Identity, permission: Permission) -> None:
    """Raises ProblemError (403) where the token lacks the permission."""
    if not may(who, permission):
        narrowed = " narrowed to a site or pool" if permission in MAY[who.role] else ""
        what = f"{who.name} ({who.role}{narrowed}) may not {permission.replace('_', ' ')}"
        raise refuse(403, "forbidden", what, "use a token with another role")
