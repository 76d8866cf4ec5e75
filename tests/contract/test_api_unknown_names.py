"""Names of nothing are answered alike: 404 by the API, exit status 4 by each command that names one thing."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hostler.cli.exit_codes import ExitCode
from hostler.core.intents.named_targets import is_there
from hostler.core.state.intent import Intent, act_of
from hostler.core.state.verbs.arguments import arguments_of
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.facts import Permission, Target
from hostler.server.routes.intents import OWN_ROUTES
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House, house
from tests.contract.journal_samples import sample
from tests.contract.test_api_audit import tried

NOBODY = "none-such"
PLACES = {
    Target.nodes: ("rack:none-such", "pool:none-such", NOBODY),
    Target.scope: ("switch:none-such", NOBODY),
    Target.pool: ("pool:none-such",),
    Target.cluster: ("cluster:none-such",),
    Target.rack: ("rack:none-such",),
    Target.domain: ("rack:none-such", NOBODY),
}
"""How a target of which nothing is there is written; by its bare name where no row says otherwise."""
GRANTED = {"pause", "resume", "report-remediators"}
"""Verbs that are granted on places that are to come."""
COMMANDS = (
    "node get {}", "node explain {}", "node timeline {}", "node conditions {}", "node bundles {}", "node checklist {}",
    "node certificates {}", "node observations {}", "node cordon {} --reason x", "node locate {} --reason x",
    "approval show {}", "approval approve {} --reason x", "approval deny {} --reason x",
    "approval withdraw {} --reason x", "ticket get {}", "ticket claim {} --reason x", "ticket close {} --reason x",
    "ticket consent {} --reason x", "hold release {} --reason x", "maintenance cancel {} --reason x",
    "incident show {}", "incident close {} --reason x", "rollout show {}", "rollout stop {} --reason x",
    "fabric show {}", "fabric remove {} --reason x", "golden show {}", "golden retire {} --reason x",
    "rma show {}", "rma close {} --result confirmed --reason x", "pool get {}", "pool mode {} observe --reason x",
    "rack get {}", "rack bring-up {} --reason x", "asset rebind {} --kind bmc --value https://b --reason x",
    "part get {}", "job show {}", "domain get {}", "domain call-off {} --reason x", "backtest show {}",
    "context use {}",
)  # fmt: skip
"""Commands that name one thing."""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        yield inside


async def asked(world: House, verb: str, target: str, **more: Any) -> tuple[int, dict[str, Any]]:
    """Ask with the arguments that the verb must have, whatever they say."""
    needed = {one.name for one in arguments_of(VERBS[verb]) if one.required}
    given = msgspec.to_builtins(sample(VERBS[verb]))
    act = {"verb": verb, **{name: value for name, value in given.items() if name in needed}}
    status, answer = await world.operator.post(
        "/v1/intents", {"act": act, "target": target, "reason": "a test", **more}
    )
    return status, answer


async def test_an_act_on_what_is_not_there_is_not_found(world: House) -> None:
    """Mutants: it is refused as if it were there; a kind of target is looked for in another kind's table."""
    await world.adopt(1)
    for verb, kind in VERBS.items():
        target = kind.facts.target
        if target is Target.fleet or verb in OWN_ROUTES or kind.facts.asks is Permission.answer:
            continue
        for name in PLACES.get(target, (NOBODY,)):
            if verb in GRANTED and name != NOBODY:
                continue
            for dry_run in (False, True):
                status, answer = await asked(world, verb, name, dry_run=dry_run)
                assert (status, answer.get("error")) == (404, "unknown"), (verb, name, answer)
                assert answer["facts"]["intent"]


async def test_a_refusal_of_what_is_there_stays_one(world: House) -> None:
    """Mutant: every refusal is "not found". Asked again with the same key, both are answered as before."""
    await world.adopt(1)
    for verb, target, status in (("certify", "n0", 409), ("certify", "n9", 404), ("rack-call-off", "rack:r0", 409)):
        for _ in range(2):
            found, answer = await asked(world, verb, target, key=f"once {verb} {target}")
            assert found == status, answer
    assert (await asked(world, "cordon", "nodes", nodes=["n0", "n9"]))[0] == 404
    assert (await asked(world, "call-off", "n0"))[0] == 409
    narrowed = world.client(Grant("bob", Role.operator, pool="beta"))
    body = {"act": {"verb": "release"}, "target": NOBODY, "reason": "x"}
    assert (await narrowed.post("/v1/intents", body))[0] == 403, "whether it is there is not for them to know"


def test_every_kind_of_target_is_looked_for(world: House) -> None:
    """Mutant: a new kind of target is always there, or an error of the server."""
    for kind in Target:
        intent = Intent("i", act_of("hold", {}), NOBODY, "ada", "x", world.app_state.now())
        assert is_there(world.cell.view, kind, intent) is (kind is Target.fleet), kind


@pytest.mark.timeout(240)
@pytest.mark.nightly("runs every command")
async def test_every_command_that_names_one_thing_ends_with_not_found(world: House) -> None:
    """Mutants: a command says *refused*, or prints an empty answer and ends well."""
    await world.adopt(1)
    ended = {line: await tried(world, *line.format(NOBODY).split()) for line in COMMANDS}
    wrong = {line: told for line, told in ended.items() if told[0] != ExitCode.not_found}
    assert not wrong, "\n".join(f"{line}: {told}" for line, told in wrong.items())
    assert all(NOBODY in said for _, said in ended.values()), ended
