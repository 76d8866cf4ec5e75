"""Intents over the API: in whose name, how often, on what, and how far a narrowed token reaches."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hostler.core.state import events as e
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.holds import Cordon
from hostler.server.routes.intents import OWN_ROUTES
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import PATIENCE_S, XID79, House, bmc_of, house


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        yield inside


def recorded(world: House) -> list[e.IntentRecorded]:
    return [r.event for r in world.cell.journal.records() if isinstance(r.event, e.IntentRecorded)]


async def test_an_intent_carries_the_tokens_name_and_the_nodes_id(world: House) -> None:
    await world.adopt(1)
    bob = world.client(Grant("bob", Role.operator))
    status, answer = await bob.post("/v1/nodes/host-n0/cordon", {"reason": "fan noise"})
    assert (status, answer["granted"]) == (200, True)
    said = recorded(world)[-1]
    assert (said.intent.person, said.intent.target, said.intent.verb) == ("bob", "n0", "cordon")
    status, _ = await bob.post("/v1/nodes/n0/uncordon", {"reason": "x", "person": "ada"})
    assert status == 422


async def test_a_refusal_says_why_and_is_recorded(world: House) -> None:
    await world.adopt(1)
    status, body = await world.operator.post("/v1/nodes/n0/certify", {"reason": "looks good"})
    assert (status, body["error"]) == (409, "refused")
    assert "is in phase production" in body["detail"]
    assert not recorded(world)[-1].granted


async def test_a_dry_run_tells_the_plan_and_records_nothing(world: House) -> None:
    await world.adopt(1)
    world.work("n0", "acme")
    await world.until(lambda: world.cell.live.workloads(world.cell.view.nodes["n0"]))
    before = world.cell.health().seq
    status, answer = await world.operator.post("/v1/nodes/n0/reboot", {"reason": "x", "dry_run": True})
    assert status == 200
    assert "cordon → drain" in answer["detail"]["plan"]
    assert "acme/train-0" in answer["detail"]["waits_for"]
    assert world.cell.health().seq == before


@pytest.mark.parametrize("by_header", [True, False])
async def test_a_repeated_key_gets_the_first_answer_once(world: House, by_header: bool) -> None:
    await world.adopt(1)
    body = {"reason": "look", "key": "" if by_header else "k1"}
    headers = {"Idempotency-Key": "k1"} if by_header else {}
    first = await world.operator.post("/v1/nodes/n0/hold", body, headers=headers)
    again = await world.operator.post("/v1/nodes/n0/hold", body, headers=headers)
    assert first[1]["text"] == again[1]["text"]
    assert again[1]["detail"]["repeated"] == "yes"
    assert len(world.cell.view.holds) == 1


async def test_a_key_of_one_request_is_refused_for_another(world: House) -> None:
    """Mutant: the key alone is compared; "granted" is then said of what was not done."""
    await world.adopt(2)
    headers = {"Idempotency-Key": "k1"}
    assert (await world.operator.post("/v1/nodes/n0/cordon", {"reason": "look"}, headers=headers))[0] == 200
    for path, body in (
        ("n1/cordon", {"reason": "look"}),
        ("n0/hold", {"reason": "look"}),
        ("n0/cordon", {"reason": "another"}),
        ("n0/cordon", {"reason": "look", "act": {"hours": 4}}),
        ("n0/cordon", {"reason": "look", "dry_run": True}),
    ):
        status, answer = await world.operator.post(f"/v1/nodes/{path}", body, headers=headers)
        assert (status, answer["error"]) == (422, "key_reused"), path
    assert [h.scope.text for h in world.cell.view.holds.values()] == ["n0"]


async def test_a_tenant_lifts_the_cordons_that_it_laid_and_no_others(world: House) -> None:
    """Mutants: a tenant's uncordon lifts an operator's; nobody but a tenant lifts the tenant's; a name is enough."""
    await world.adopt(1)
    mallory = world.client(Grant("ada", Role.tenant, tenant="acme"))
    assert (await world.operator.post("/v1/nodes/n0/cordon", {"reason": "smells of smoke"}))[0] == 200
    status, body = await mallory.post("/v1/nodes/n0/uncordon", {"reason": "mine"})
    assert (status, "ask its owner or an operator" in body["detail"]) == (409, True)
    assert (await mallory.post("/v1/nodes/n0/cordon", {"reason": "our own look"}))[0] == 200
    assert len(world.cell.view.holds) == 2
    status, answer = await mallory.post("/v1/nodes/n0/uncordon", {"reason": "done"})
    assert (status, "1 cordon(s) lifted" in answer["text"], "these stay" in answer["text"]) == (200, True, True)
    assert [(h.reason, h.tenant) for h in world.cell.view.holds.values()] == [("smells of smoke", "")]
    assert (await mallory.post("/v1/nodes/n0/cordon", {"reason": "once more"}))[0] == 200
    assert (await world.operator.post("/v1/nodes/n0/uncordon", {"reason": "all well"}))[0] == 200
    assert not len(world.cell.view.holds)


async def test_keys_of_different_people_do_not_meet(world: House) -> None:
    """Mutant: hand the key to the core as it is; the second person then gets the first one's answer."""
    await world.adopt(1)
    bob = world.client(Grant("bob", Role.operator))
    for person in (world.operator, bob):
        status, answer = await person.post("/v1/nodes/n0/hold", {"reason": "look", "key": "k"})
        assert (status, "repeated" in answer["detail"]) == (200, False)
    assert sorted(h.owner for h in world.cell.view.holds.values()) == ["ada", "bob"]


async def test_a_rack_is_returned_for_maintenance_as_a_whole(world: House) -> None:
    names = await world.adopt(3)
    world.work("n0", "acme")
    await world.until(lambda: world.cell.live.workloads(world.cell.view.nodes["n0"]))
    status, answer = await world.operator.post("/v1/racks/r0/return-for-maintenance", {"reason": "PDU swap"})
    assert status == 200, answer
    asked = [c for n in names for c in world.cell.view.nodes[n].conditions if c.type == "operator.maintenance"]
    assert [c.node for c in asked] == names
    assert len({c.group for c in asked}) == 1


async def test_a_rack_that_can_never_fit_its_budget_is_refused_and_in_parts_it_is_taken(world: House) -> None:
    await world.adopt(4)
    status, refused = await world.operator.post("/v1/racks/r0/return-for-maintenance", {"reason": "PDU swap"})
    assert (status, "allows 3 of 3 to be unavailable at once, and this takes 4" in refused["detail"]) == (409, True)
    part = {"act": {"verb": "return-for-maintenance"}, "target": "nodes", "nodes": ["n0", "n1"], "reason": "PDU swap"}
    assert (await world.operator.post("/v1/intents", part))[0] == 200


async def test_a_technician_does_a_technicians_work_only(world: House) -> None:
    rita = world.client(Grant("rita", Role.technician))
    nodes = [{"id": "m0", "sku": "h100", "serial": "SN-m0", "bmc": bmc_of("m0")}]
    await world.operator.post("/v1/nodes", {"nodes": nodes, "reason": "new"})
    await world.until(lambda: (n := world.cell.view.nodes.get("m0")) and n.phase == "onboard")
    assert (await rita.post("/v1/nodes/m0/retire", {"reason": "x"}))[0] == 403
    assert (await rita.post("/v1/nodes/m0/certify", {"reason": "cabled"}))[0] == 200
    status, body = await rita.post("/v1/nodes/m0/end-work", {"reason": "x", "act": {"shift_lead": True}})
    assert (status, "shift lead" in body["detail"]) == (403, True)
    for said in ("true", "1", "True", 1):
        status, body = await rita.post("/v1/nodes/m0/end-work", {"reason": "x", "act": {"shift_lead": said}})
        assert (status, "$.shift_lead" in body["detail"]) == (422, True), said


async def test_a_narrowed_operator_acts_within_reach_only(world: House) -> None:
    await world.adopt(2)
    await world.adopt(2, "beta", start=2)
    beth = world.client(Grant("beth", Role.operator, pool="beta"))
    assert [n["id"] for n in (await beth.get("/v1/nodes"))["items"]] == ["n2", "n3"]
    assert (await beth.post("/v1/nodes/n2/hold", {"reason": "look"}))[0] == 200
    assert (await beth.post("/v1/nodes/n0/hold", {"reason": "look"}))[0] == 404
    for target in ("n0", "pool:alpha", "rack:r0", "fleet", "cluster:k-acme", "nonsense", "rack:", "pool:"):
        body = {"act": {"verb": "hold"}, "target": target, "reason": "look"}
        assert (await beth.post("/v1/intents", body))[0] == 403, target
    (own,) = [h.id for h in world.cell.view.holds.values()]
    await world.operator.post("/v1/nodes/n0/hold", {"reason": "ada's"})
    (other,) = [h.id for h in world.cell.view.holds.values() if h.id != own]
    assert (await beth.post("/v1/intents", {"act": {"verb": "release"}, "target": other, "reason": "x"}))[0] == 403
    assert (await beth.post("/v1/intents", {"act": {"verb": "release"}, "target": own, "reason": "x"}))[0] == 200
    assert (await beth.call("GET", "/v1/config"))[0] == 403


async def test_registration_names_each_bad_entry(world: House) -> None:
    nodes = [{"sku": "h100"}, {"sku": "nope"}, {"sku": "h100", "id": "a b"}]
    status, body = await world.operator.post("/v1/nodes", {"nodes": nodes, "reason": "new"})
    assert status == 422
    assert [p["file"] for p in body["problems"]] == ["nodes[1]", "nodes[2]"]
    assert len(world.cell.view.nodes) == 0


async def test_documents_do_not_slip_in_through_the_general_door(world: House) -> None:
    for verb in ("register", "adopt", "activate", "register-assets"):
        body = {"act": {"verb": verb, "nodes": "[]"}, "target": "fleet", "reason": "x"}
        assert (await world.operator.post("/v1/intents", body))[0] == 400
    assert (await world.operator.post("/v1/intents", {"act": {"verb": "fly"}, "target": "fleet", "reason": "x"}))[
        0
    ] == 404
    assert (await world.operator.post("/v1/nodes/n0/pause", {"reason": "x"}))[0] == 404
    await world.adopt(1)
    photo = {"digest": "0" * 64, "name": "front.jpg", "media_type": "image/jpeg", "size": 9, "item": 1}
    asked = {"act": photo, "reason": "nobody has its bytes"}
    status, body = await world.operator.post("/v1/nodes/n0/add-item-file", asked)
    assert (status, body["instead"]) == (400, "use hostler node attach")


async def tenants(world: House) -> None:
    """n0 and n1 serve acme, n2 and n3 globex, in one rack; then n0 fails and leaves acme's pool."""
    await world.adopt(2)
    await world.adopt(2, "beta", start=2)
    await world.report("n1", kind="kernel_log", text=XID79, facility=0)
    await world.operator.post(
        "/v1/intents", {"act": {"verb": "pause"}, "target": "pool:beta", "reason": "globex asked"}
    )
    await world.operator.post("/v1/nodes/n2/reboot", {"reason": "for globex"})
    await world.until(lambda: not world.cell.view.nodes["n1"].plan)
    await world.operator.post("/v1/nodes/n1/hold", {"reason": "cabling of Globex's pool beta beside it"})


TENANT_PATHS = (
    "/v1/nodes", "/v1/map", "/v1/status", "/v1/conditions", "/v1/plans", "/v1/operations", "/v1/waiting", "/v1/parts",
    "/v1/pools", "/v1/tickets", "/v1/holds", "/v1/maintenance", "/v1/agents", "/v1/me", "/v1/nodes/n0",
    "/v1/nodes/n0/history", "/v1/nodes/n0/explain", "/v1/nodes/n0/conditions", "/v1/nodes/n0/observations",
    "/v1/nodes/n1/history", "/v1/nodes/n1/explain", "/v1/maintenance?node=n1", "/v1/parts/GPU-n0-0",
    "/v1/parts?shelf=true",
)  # fmt: skip


async def test_a_tenant_reads_no_other_customers_name_anywhere(world: House) -> None:
    """Mutant: leave `sees` out of any list, or the redaction out of the response."""
    await tenants(world)
    alice = world.client(Grant("alice", Role.tenant, tenant="acme"))
    for path in TENANT_PATHS:
        status, body = await alice.call("GET", path)
        assert status == 200, (path, body)
        told = str(body).lower()
        for secret in ("globex", "beta", "'n2'", "'n3'", "sn-n2"):
            assert secret not in told, (path, secret, told)
    assert [n["id"] for n in (await alice.get("/v1/nodes"))["items"]] == ["n0", "n1"]
    assert [p["pool"]["name"] for p in (await alice.get("/v1/pools"))["items"]] == ["alpha"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/nodes/n2", "/v1/nodes/n2/history", "/v1/nodes/n2/explain", "/v1/nodes/SN-n2", "/v1/pools/beta",
        "/v1/parts/GPU-n2-0", "/v1/maintenance?node=n2", "/v1/events?node=n2", "/v1/nodes/n2/observations",
    ],
)  # fmt: skip
async def test_another_customers_node_is_unknown_to_a_tenant(world: House, path: str) -> None:
    await tenants(world)
    alice = world.client(Grant("alice", Role.tenant, tenant="acme"))
    status, body = await alice.call("GET", path)
    unknown_status, unknown = await alice.call("GET", path.replace("n2", "n9").replace("beta", "nope"))
    assert (status, unknown_status) == (404, 404)
    assert body["detail"].replace("n2", "n9").replace("beta", "nope") == unknown["detail"]


async def test_a_tenant_acts_on_its_own_nodes_only(world: House) -> None:
    await tenants(world)
    alice = world.client(Grant("alice", Role.tenant, tenant="acme"))
    assert (await alice.post("/v1/nodes/n0/cordon", {"reason": "we drain it"}))[0] == 200
    assert (await alice.post("/v1/nodes/n2/cordon", {"reason": "x"}))[0] == 404
    for target in ("n2", "rack:r0", "pool:beta", "fleet"):
        body = {"act": {"verb": "cordon"}, "target": target, "reason": "x"}
        assert (await alice.post("/v1/intents", body))[0] == 403, target
    assert (await alice.post("/v1/intents", {"act": {"verb": "cordon"}, "target": "pool:alpha", "reason": "x"}))[
        0
    ] == 200
    for verb in ("retire", "hold", "certify"):
        assert (await alice.post(f"/v1/nodes/n0/{verb}", {"reason": "x"}))[0] == 403, verb
    for path in ("/v1/config", "/v1/assets", "/metrics"):
        assert (await alice.call("GET", path))[0] == 403, path


async def test_what_an_operator_writes_is_veiled_in_a_tenants_stream_too(world: House) -> None:
    await tenants(world)
    alice = world.client(Grant("alice", Role.tenant, tenant="acme"))
    headers = {"Authorization": f"Bearer {alice.token}", "Last-Event-ID": "1"}
    told: list[str] = []
    async with asyncio.timeout(PATIENCE_S), world.session.get(world.url + "/v1/events", headers=headers) as answer:
        async for line in answer.content:
            told.append(line.decode())
            if "hold_placed" in told[-1]:
                break
    text = "".join(told)
    assert "told to operators only" in text
    assert "cabling" not in text
    assert "globex" not in text.lower()
    assert '"n2"' not in text


async def test_a_tenants_past_node_shows_its_own_interval(world: House) -> None:
    await tenants(world)
    await world.operator.post("/v1/nodes/n0/return-for-maintenance", {"reason": "shrink"})
    await world.until(lambda: world.cell.view.nodes["n0"].phase == "triage")
    await world.operator.post("/v1/nodes/n0/hold", {"reason": "secret afterwards"})
    alice = world.client(Grant("alice", Role.tenant, tenant="acme"))
    assert (await alice.call("GET", "/v1/nodes/n0"))[0] == 404
    history = (await alice.get("/v1/nodes/n0/history"))["items"]
    assert history[0]["name"] == "node_released"
    assert len((await world.operator.get("/v1/nodes/n0/history"))["items"]) > len(history)
    assert "secret afterwards" not in str(history)


async def test_an_intent_can_be_followed_from_its_wait_to_its_end(world: House) -> None:
    await world.adopt(1)
    world.work("n0", "acme")
    await world.until(lambda: world.cell.live.workloads(world.cell.view.nodes["n0"]))
    _, answer = await world.operator.post("/v1/nodes/n0/reboot", {"reason": "a kernel"})
    path = f"/v1/intents/{answer['detail']['intent']}"
    await world.until(lambda: world.cell.view.nodes["n0"].waiting)
    found = await world.operator.get(path)
    assert (found["state"], found["verb"], found["nodes"][0]["state"]) == ("under_way", "reboot", "running")
    assert "acme/train-0" in found["nodes"][0]["blockers"][0]["text"]
    world.driver.works("n0", ())
    await world.until(lambda: world.cell.view.nodes["n0"].plan is None)
    ended = await world.operator.get(path)
    assert (ended["state"], ended["nodes"][0]["state"]) == ("done", "done")
    told = await world.operator.get("/v1/maintenance?node=n0")
    assert ("reboot", "done") in [(row["action"], row["result"]) for row in told["deeds"]]
    gpus = (await world.operator.get("/v1/pools/alpha"))["gpus"]
    assert (gpus["reserved"], gpus["delivered"], gpus["in_use"]) == (6, 2, 0)


async def test_a_refused_intent_and_one_that_waits_for_a_second_person_have_a_handle_too(world: House) -> None:
    await world.adopt(1)
    _, refused = await world.operator.post("/v1/nodes/n0/certify", {"reason": "looks good"})
    assert (await world.operator.get(f"/v1/intents/{refused['facts']['intent']}"))["state"] == "refused"
    args = {"kind": "bmc", "value": "https://elsewhere.example"}
    status, waits = await world.operator.post("/v1/nodes/n0/rebind", {"reason": "moved", "act": args})
    assert status == 202
    path = f"/v1/intents/{waits['detail']['intent']}"
    assert (await world.operator.get(path))["state"] == "waiting_for_approval"
    bob = world.client(Grant("bob", Role.operator))
    await bob.post(f"/v1/approvals/{waits['detail']['approval']}/deny", {"reason": "no"})
    assert (await world.operator.get(path))["state"] == "denied"
    globex = world.client(Grant("g", Role.tenant, tenant="globex"))
    for unseen in (path, "/v1/intents/nothing"):
        assert (await globex.call("GET", unseen))[0] == 404


@pytest.mark.parametrize(
    ("act", "status", "detail", "instead"),
    [
        ({"verb": "fly"}, 404, "no verb 'fly'", "use one of "),
        ({"verb": "hold", "hour": 2}, 422, "hold takes hours (number, may be left out): ", "see /schema/openapi.json"),
        (
            {"verb": "hold", "hours": "2"},
            422,
            "Expected `float | null`, got `str` - at `$.hours`",
            "see /schema/openapi.json",
        ),
        ({"verb": "hold", "hours": -1}, 422, "Expected `float` > 0.0 - at `$.hours`", "see /schema/openapi.json"),
        ({"verb": "mode", "mode": "dance"}, 422, "mode (one of observe propose act)", "see /schema/openapi.json"),
        ({"verb": "vouch"}, 422, "Object missing required field `profile`", "see /schema/openapi.json"),
        ({"verb": "pause", "hours": 2}, 422, "pause takes nothing: ", "see /schema/openapi.json"),
        ({"hours": 2}, 422, "the act names no verb", 'write {"act": {"verb": "hold"'),
        ({"verb": ["hold"]}, 422, "`verb` of the act is not a text", 'write {"act": {"verb": "hold"'),
    ],
)
async def test_what_a_verb_does_not_take_is_refused_whole_with_what_it_takes(
    world: House, act: dict[str, object], status: int, detail: str, instead: str
) -> None:
    """Mutants: a text is taken for a number; a member that the verb has not is passed over."""
    await world.adopt(1)
    before = world.cell.health().seq
    found, body = await world.operator.post("/v1/intents", {"act": act, "target": "n0", "reason": "x"})
    assert (found, detail in body["detail"]) == (status, True), body
    assert body["instead"].startswith(instead)
    assert world.cell.health().seq == before


async def test_a_verb_in_the_path_takes_its_own_arguments_and_no_other_verb(world: House) -> None:
    """Mutant: the act's verb is the one that is asked for, whatever the path and its permission say."""
    await world.adopt(1)
    status, body = await world.operator.post("/v1/nodes/n0/cordon", {"reason": "x", "act": {"verb": "hold"}})
    assert (status, body["detail"]) == (422, "the act names another verb than the path, which names cordon")
    same = {"reason": "x", "act": {"verb": "cordon", "hours": 2.5}}
    assert (await world.operator.post("/v1/nodes/n0/cordon", same))[0] == 200
    status, body = await world.operator.post("/v1/racks/r0/drain", {"reason": "x", "act": {"now": "true"}})
    assert (status, "Expected `bool`, got `str` - at `$.now`" in body["detail"]) == (422, True)
    (hold,) = world.cell.view.holds.values()
    assert recorded(world)[-1].intent.act == Cordon(2.5)
    assert hold.until is not None


async def test_the_permission_is_asked_before_the_arguments_are_read(world: House) -> None:
    """Mutant: who may not ask for a verb learns what it takes."""
    await world.adopt(1)
    vera = world.client(Grant("vera", Role.viewer))
    assert (await vera.post("/v1/nodes/n0/hold", {"reason": "x", "act": {"hour": 2}}))[0] == 403
    beth = world.client(Grant("beth", Role.operator, pool="beta"))
    far = {"act": {"verb": "hold", "hour": 2}, "target": "pool:alpha", "reason": "x"}
    assert (await beth.post("/v1/intents", far))[0] == 403


async def test_a_body_of_the_old_shape_is_told_where_its_members_go(world: House) -> None:
    await world.adopt(1)
    old = {"verb": "hold", "target": "n0", "args": {"hours": "2"}, "reason": "x"}
    status, body = await world.operator.post("/v1/intents", old)
    assert (status, body["instead"]) == (
        422,
        'the verb belongs into `act`: {"act": {"verb": "hold", "hours": 2}, "target": "n0", "reason": "why"}',
    )
    for path in ("/v1/nodes/n0/hold", "/v1/racks/r0/hold", "/v1/approvals/none/approve"):
        status, body = await world.operator.post(path, {"reason": "x", "args": {}})
        assert (status, "arguments belong into `act`" in body["instead"]) == (422, True), path


async def test_an_act_is_shown_in_the_shape_in_which_it_is_asked_for(world: House) -> None:
    """Mutants: an argument is shown as text; the act of an intent is its verb alone."""
    await world.make_room(12)
    await world.adopt(12)
    act = {"verb": "drain", "now": True, "hours": 2.5}
    status, waits = await world.operator.post("/v1/intents", {"act": act, "target": "pool:alpha", "reason": "a kernel"})
    assert status == 202
    shown = await world.operator.get(f"/v1/approvals/{waits['detail']['approval']}")
    assert shown["act"] == act
    assert (await world.operator.get(f"/v1/intents/{waits['detail']['intent']}"))["act"] == act
    again = {"act": shown["act"], "target": shown["target"], "reason": shown["reason"]}
    assert (await world.operator.post("/v1/intents", again))[1]["detail"]["approval"] == shown["id"]


async def test_the_description_tells_acts_apart_by_their_verb(world: House) -> None:
    """Mutants: an act is any object; a verb that brings a document is among them; a component is another's."""
    async with world.session.get(world.url + "/schema/openapi.json") as answer:
        schemas = (await answer.json(content_type=None))["components"]["schemas"]
    act = schemas["Act"]
    assert schemas["IntentBody"]["properties"]["act"] == {"$ref": "#/components/schemas/Act"}
    assert act["discriminator"]["propertyName"] == "verb"
    assert set(act["discriminator"]["mapping"]) == set(VERBS) - set(OWN_ROUTES)
    assert {one["$ref"] for one in act["oneOf"]} == set(act["discriminator"]["mapping"].values())
    hold = schemas[act["discriminator"]["mapping"]["hold"].rpartition("/")[2]]
    assert (hold["additionalProperties"], hold["required"]) == (False, ["verb"])
    assert {"type": "null"} in hold["properties"]["hours"]["anyOf"]
    of_path = schemas["ActBody"]["properties"]["act"]
    assert of_path["properties"]["now"]["type"] == "boolean"
    assert of_path["additionalProperties"] is False
