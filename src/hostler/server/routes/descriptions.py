"""Descriptions of the API beside OpenAPI's own, which the framework serves."""

from typing import Any

from litestar import get

from hostler.server import asyncapi
from hostler.server.dependencies import TheAppState


@get(asyncapi.PATH, include_in_schema=False)
async def describe_streams(app_state: TheAppState) -> dict[str, Any]:
    """Describe, as AsyncAPI, what this server sends by itself; anybody may ask."""
    return asyncapi.document(app_state.cell.version)


handlers = [describe_streams]
