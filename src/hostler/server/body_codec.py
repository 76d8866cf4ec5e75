"""Request and response bodies: decoded strictly into their type, and redacted where a tenant asks."""

from typing import Any

import msgspec
from litestar import Request, Response
from litestar.response.base import ASGIResponse

from hostler.client.answers import IntentView
from hostler.server.problems import refuse
from hostler.server.token_scope import shown
from hostler.server.tokens import Identity


class StrictRequest(Request[Any, Any, Any]):
    """A request whose JSON body is decoded straight into the handler's type: no "5" for 5, no detour over dicts."""

    async def json(self) -> Any:
        """The body as the type of the handler's `data`. Raises msgspec.DecodeError, and ProblemError.

        A member that belongs elsewhere is refused with what the body's type says of it in `moved`.
        """
        field = self.route_handler.parsed_data_field
        wanted = field.annotation if field is not None else Any
        try:
            return msgspec.json.decode(await self.body(), type=wanted)
        except msgspec.ValidationError as error:
            for member, instead in getattr(wanted, "moved", {}).items():
                if str(error) == f"Object contains unknown field `{member}`":
                    raise refuse(422, "malformed", str(error), instead) from error
            raise


class RedactedResponse(Response[Any]):
    """A response in which nobody reads of whom they do not see; 202 where an intent waits for a second person."""

    def to_asgi_response(self, app: Any, request: Request[Any, Any, Any], **kwargs: Any) -> ASGIResponse:
        """Redact the content for a tenant, set the status, and encode it."""
        if isinstance(self.content, IntentView) and not self.content.granted:
            self.status_code = 202
        who = request.scope.get("user")
        if isinstance(who, Identity) and not who.whole:
            self.content = shown(who, request.app.state["app_state"].cell.view, self.content)
        return super().to_asgi_response(app, request, **kwargs)
