"""Notifications over HTTP: routes of the configuration, deliveries, a test, and a dead letter that is sent again."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hostler.server.tokens import Grant, Role
from tests.contract.api_world import DOCUMENTS, House, house
from tests.contract.test_notify_targets import NOW, PAGE

ROUTES = """
routes:
  night: {kind: pagerduty, secret: "folder:pd", pages: true}
  acme: {kind: webhook, url: "https://acme.example/hook", secret: "folder:acme", tenant: acme}
"""
BECAUSE = {"reason": "a test"}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        documents = {**DOCUMENTS, "routes.yaml": ROUTES}
        status, body = await inside.operator.post("/v1/config", {"documents": documents, "reason": "tell somebody"})
        assert status == 200, body
        yield inside


async def test_routes_tell_of_what_they_are_told_and_no_secret(world: House) -> None:
    acme, night = await world.operator.get("/v1/notifications/routes")
    assert (acme["told"], night["told"], night["queued"]) == ("tenant acme", "pages", 0)


async def test_a_test_is_queued_for_a_route_that_there_is(world: House) -> None:
    assert (await world.operator.post("/v1/notifications/routes/nobody/test", BECAUSE))[0] == 404
    status, queued = await world.operator.post("/v1/notifications/routes/night/test", BECAUSE)
    assert status == 202
    [one] = (await world.operator.get("/v1/notifications/deliveries?route=night"))["items"]
    assert (one["message"]["id"], one["state"], one["message"]["page"]) == (queued["id"], "queued", False)
    metrics = await world.operator.get("/metrics")
    assert 'hostler_notifications_queued{route="night"} 1.0' in metrics
    assert 'hostler_notifications_dead{route="acme"} 0.0' in metrics


async def test_a_dead_letter_is_queued_again_once(world: House) -> None:
    assert world.outbox is not None
    world.outbox.put(PAGE, NOW)
    [one] = world.outbox.due(NOW, 1)
    world.outbox.ended(one, "dead", NOW, "410")
    [dead] = (await world.operator.get("/v1/notifications/deliveries?result=dead"))["items"]
    path = f"/v1/notifications/deliveries/{dead['number']}/retry"
    assert [(await world.operator.post(path, BECAUSE))[0] for _ in range(2)] == [202, 404]


async def test_pages_of_deliveries_follow_one_another(world: House) -> None:
    for _ in range(3):
        await world.operator.post("/v1/notifications/routes/night/test", BECAUSE)
    first = await world.operator.get("/v1/notifications/deliveries?limit=2")
    rest = await world.operator.get(f"/v1/notifications/deliveries?limit=2&before={first['cursor']}")
    assert (len(first["items"]), len(rest["items"]), rest["cursor"]) == (2, 1, None)


async def test_a_tenant_does_not_see_who_is_told_of_what(world: House) -> None:
    tenant = world.client(Grant("t", Role.tenant, tenant="acme"))
    for path in ("routes", "deliveries"):
        assert (await tenant.call("GET", f"/v1/notifications/{path}"))[0] == 403
