"""Requests of each act, their receivers, and the results of answers and refusals."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hostler.cli.exit_codes import ExitCode
from hostler.core.state.verbs.every import VERBS
from tests.cli_api import Asked, FakeApi, hostler, page, serving

ON_NODES = [verb for verb, kind in VERBS.items() if kind.facts.heading]

MUST = {
    "start-work": ("--serial", "S1"),
    "tick-item": ("--item", "1"),
    "clear-condition": ("--condition", "gpu.thermal"),
    "vouch": ("--profile", "suspect"),
    "rebind": ("--kind", "bmc", "--value", "b"),
}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeApi]:
    monkeypatch.setenv("HOSTLER_CONFIG", str(tmp_path / "contexts.json"))
    monkeypatch.delenv("HOSTLER_TOKEN", raising=False)
    with serving() as fake:
        monkeypatch.setenv("HOSTLER_SERVER", fake.url)
        fake.does("POST /v1/intents", granted)
        yield fake


def granted(asked: Asked) -> web.Response:
    return web.json_response({"granted": True, "text": f"{asked.body['act']['verb']} is asked for", "detail": {}})


def refused(text: str, status: int = 409) -> web.Response:
    return web.json_response({"error": "refused", "detail": text, "instead": "look"}, status=status)


@pytest.mark.parametrize("command", [kind.facts.command for kind in VERBS.values() if kind.facts.command])
def test_every_verb_of_the_core_has_its_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutant: a verb's `command` names one that is not there."""
    assert hostler(*command.split(), "--help") == ExitCode.ok
    assert f"Usage: hostler {command} " in capsys.readouterr().out


def test_a_served_cell_alone_says_which_remediators_it_finds() -> None:
    assert [verb for verb, kind in VERBS.items() if not (kind.facts.heading or kind.facts.command)] == [
        "report-remediators"
    ]


@pytest.mark.parametrize("verb", ON_NODES)
def test_every_act_on_a_node_sends_its_verb_target_and_reason(api: FakeApi, verb: str) -> None:
    assert hostler("node", verb, "n1", "--reason", "because", *MUST.get(verb, ())) == ExitCode.ok
    (body,) = api.posted()
    told = (body["act"]["verb"], body["target"], body["reason"], body["dry_run"])
    assert told == (verb, "n1", "because", False)


@pytest.mark.parametrize(
    ("words", "verb", "target", "args"),
    [
        ("node reboot n1 --now", "reboot", "n1", {"now": True}),
        ("node drain rack:r1 --now --hours 2.5", "drain", "rack:r1", {"now": True, "hours": 2.5}),
        ("ticket consent t-1", "consent", "t-1", {}),
        ("approval approve a-1", "approve-request", "a-1", {}),
        ("approval deny a-1", "deny-request", "a-1", {}),
        ("approval withdraw a-1", "withdraw-request", "a-1", {}),
        ("rollout stop r-1", "stop-rollout", "r-1", {}),
        ("node cordon n1 --hours 4", "cordon", "n1", {"hours": 4.0}),
        ("node start-work n1 --serial S --ticket T", "start-work", "n1", {"serial": "S", "ticket": "T"}),
        ("node end-work n1 --shift-lead", "end-work", "n1", {"shift_lead": True}),
        ("node clear-condition n1 --condition a.b", "clear-condition", "n1", {"condition": "a.b"}),
        ("node rebind n1 --kind bmc --value https://b", "rebind", "n1", {"kind": "bmc", "value": "https://b"}),
        ("hold place fleet --hours 1", "hold", "fleet", {"hours": 1.0}),
        ("hold release h1", "release", "h1", {}),
        ("incident close i7", "close-incident", "i7", {}),
        ("incident treat-individually i7", "treat-individually", "i7", {}),
        ("pause pool:train", "pause", "pool:train", {}),
        ("resume fleet", "resume", "fleet", {}),
        ("pool pause train", "pause", "pool:train", {}),
        ("pool resume train", "resume", "pool:train", {}),
        ("pool mode train act", "mode", "pool:train", {"mode": "act"}),
        ("pool mode train observe --remedy reboot", "mode", "pool:train", {"remedy": "reboot", "mode": "observe"}),
        ("pool mode pool:train --mode propose", "mode", "pool:train", {"mode": "propose"}),
        ("brake release", "release-brake", "fleet", {}),
        ("doctor accept k1 draino", "accept-remediator", "cluster:k1", {"remediator": "draino"}),
        ("doctor withdraw k1 draino", "withdraw-remediator", "cluster:k1", {"remediator": "draino"}),
        ("restore release", "release-restore", "fleet", {}),
        ("restore release --unheard 3", "release-restore", "fleet", {"unheard": 3}),
        ("clock confirm", "confirm-clock", "fleet", {}),
        ("ticket close t1", "close-ticket", "t1", {}),
        ("node start-work n1 --serial S --prepare", "start-work", "n1", {"serial": "S", "prepare": True}),
        ("node locate n1", "locate", "n1", {}),
        ("node locate n1 --hours 2 --shift-lead", "locate", "n1", {"hours": 2.0, "shift_lead": True}),
        ("node unlocate n1", "unlocate", "n1", {}),
        ("ticket claim t1", "claim-ticket", "t1", {}),
        ("ticket claim t1 --hours 8", "claim-ticket", "t1", {"hours": 8.0}),
        ("ticket hand-over t1 --to tom", "hand-over-ticket", "t1", {"to": "tom"}),
        ("ticket hand-over t1 --shift-lead", "hand-over-ticket", "t1", {"shift_lead": True}),
        (
            "maintenance schedule rack:r1 --starts 2026-01-31T22:00:00+00:00 --ends 2026-02-01T02:00:00+00:00",
            "schedule-maintenance",
            "rack:r1",
            {"starts": "2026-01-31T22:00:00Z", "ends": "2026-02-01T02:00:00Z"},
        ),
        ("maintenance cancel w1", "cancel-maintenance", "w1", {}),
    ],
)
def test_the_options_of_an_act_become_the_arguments_of_its_intent(
    api: FakeApi, words: str, verb: str, target: str, args: dict[str, Any]
) -> None:
    assert hostler(*words.split(), "--reason", "because") == ExitCode.ok
    (body,) = api.posted()
    assert (body["act"], body["target"]) == ({"verb": verb, **args}, target)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("node cordon n1 --hours -1", "cordon takes hours (number, may be left out): Expected `float` > 0.0"),
        ("hold place fleet --hours 1e9", "hold takes hours (number, may be left out): Expected `float` <= 8760.0"),
        ("maintenance schedule fleet --starts soon --ends later", "starts (moment), ends (moment): Invalid RFC3339"),
        ("pool mode train what", 'Choose from: "observe", "propose", "act"'),
        ("node tick-item n1 --item 0", "item (integer), note (text, may be left out): Expected `int` >= 1"),
    ],
)
def test_what_a_verb_does_not_take_is_said_before_anything_is_asked(
    api: FakeApi, words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutant: the text goes to the server as it is written."""
    assert hostler(*words.split(), "--reason", "because") == ExitCode.usage
    assert said in capsys.readouterr().err
    assert api.posted() == []


@pytest.mark.parametrize(
    ("words", "verb", "args"),
    [("drain rack-7 --hours 2", "drain", {"hours": 2.0}), ("call-off rack-7", "call-off", {})],
)
def test_an_act_on_a_domain_is_asked_for_by_the_domains_own_name(
    api: FakeApi, words: str, verb: str, args: dict[str, Any]
) -> None:
    """Mutant: what is called like a rack may be a node."""
    api.does("GET /v1/domains/rack-7", lambda _: web.json_response({"scope": "rack:rack-7"}))
    assert hostler("domain", *words.split(), "--reason", "because") == ExitCode.ok
    (body,) = api.posted()
    assert (body["act"], body["target"]) == ({"verb": verb, **args}, "rack:rack-7")


@pytest.mark.parametrize("words", ["node reboot n1", "hold place fleet", "brake release", "pool mode train act"])
def test_an_act_without_a_reason_is_not_sent(api: FakeApi, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert hostler(*words.split()) == ExitCode.usage
    assert api.asked == []
    assert "--reason" in capsys.readouterr().err


def test_a_selector_names_the_nodes_that_it_finds_beside_those_given(api: FakeApi) -> None:
    api.says("GET /v1/nodes", page({"id": "n2"}, {"id": "n1"}))
    assert hostler("node", "cordon", "n1", "-l", "pool=train,phase=production", "--reason", "r") == ExitCode.ok
    assert api.asked[0].query == {"selector": "pool=train,phase=production", "limit": "11"}
    assert [body["target"] for body in api.posted()] == ["n1", "n2"]


def test_a_selector_that_finds_more_than_allowed_touches_nothing(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutant: act on the first ten; a selector that means too much then does a part of it."""
    api.says("GET /v1/nodes", page(*({"id": f"n{i}"} for i in range(3))))
    assert hostler("node", "reboot", "-l", "pool=train", "--at-most", "2", "--reason", "r") == ExitCode.refused
    assert api.posted() == []
    assert "more than 2 nodes" in capsys.readouterr().err


def test_a_selector_that_the_server_does_not_understand_asks_for_nothing(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutant: go on without the selector; `-l pol=train` then means every node."""
    problem = {
        "error": "selector",
        "detail": "selector 'pol=train' is not understood",
        "instead": "select by phase, pool",
    }
    api.says("GET /v1/nodes", problem, status=400)
    assert hostler("node", "reboot", "-l", "pol=train", "--reason", "r") == ExitCode.usage
    assert api.posted() == []
    assert "select by phase, pool" in capsys.readouterr().err


def test_an_empty_selector_is_refused(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutant: it is sent, and selects every node."""
    assert hostler("node", "reboot", "-l", " ", "--reason", "r") == ExitCode.usage
    assert api.asked == []
    assert "every node" in capsys.readouterr().err


def test_several_approvals_are_answered_one_by_one_and_a_refusal_stops_none(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutants: only the first is asked for; what follows a refusal is not; one named twice is asked for twice."""
    answers = [
        (409, {"error": "refused", "detail": "a1 has expired"}),
        (200, {"granted": True, "text": "approved", "detail": {}}),
    ]
    api.answers.clear()
    for status, answer in answers:
        api.says("POST /v1/intents", answer, status=status)
    assert hostler("approval", "approve", "a1", "a2", "a2", "--reason", "r") == ExitCode.refused
    assert [body["target"] for body in api.posted()] == ["a1", "a2"]
    assert len({body["key"] for body in api.posted()}) == 2
    said = capsys.readouterr()
    assert ("a1 has expired" in said.err, said.out.startswith("a2: approved\n")) == (True, True)


def test_all_that_one_request_asked_for_is_answered_by_naming_one_of_it(api: FakeApi) -> None:
    """Mutants: another request's approvals are answered too; one that has ended stops the others being asked."""
    rows = [{"id": one, "request": "a2" if one != "a9" else "a9"} for one in ("a2", "a3", "a4", "a9")]
    api.says("GET /v1/approvals", page(*rows))
    assert hostler("approval", "approve", "a3", "--together", "--reason", "r") == ExitCode.ok
    assert hostler("approval", "deny", "a1", "a9", "--together", "--reason", "r") == ExitCode.ok
    asked = [(body["act"]["verb"], body["target"]) for body in api.posted()]
    approved = [("approve-request", one) for one in ("a3", "a2", "a4")]
    assert asked == [*approved, ("deny-request", "a1"), ("deny-request", "a9")]


@pytest.mark.parametrize("command", [["approval", "deny"], ["ticket", "close"], ["hold", "release"]])
def test_an_act_on_nothing_named_is_refused(
    api: FakeApi, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutant: it is asked for on the whole fleet."""
    assert hostler(*command, "--reason", "r") == ExitCode.usage
    assert api.asked == []
    assert f"hostler {command[0]} list" in capsys.readouterr().err


def test_no_target_at_all_is_refused(api: FakeApi) -> None:
    assert hostler("node", "reboot", "--reason", "r") == ExitCode.usage
    api.says("GET /v1/nodes", page())
    assert hostler("node", "reboot", "-l", "pool=none", "--reason", "r") == ExitCode.usage
    assert api.posted() == []


def test_a_refused_target_does_not_keep_the_others_from_being_asked_for(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers["POST /v1/intents"] = [
        lambda a: refused("n1 stands at triage") if a.body["target"] == "n1" else granted(a)
    ]
    assert hostler("node", "reboot", "n1", "n2", "--reason", "r") == ExitCode.refused
    said = capsys.readouterr()
    assert said.out.startswith("n2: reboot is asked for\n")
    assert "n1    refused    n1 stands at triage look" in said.out
    assert said.err == "n1: n1 stands at triage\n  look\n"


def test_a_token_that_may_not_ends_it_at_the_first_target(api: FakeApi) -> None:
    api.answers["POST /v1/intents"] = [lambda _: refused("no", 403)]
    assert hostler("node", "reboot", "n1", "n2", "--reason", "r") == ExitCode.unauthorised
    assert len(api.posted()) == 1


def test_a_key_is_passed_on_and_told_apart_by_target(api: FakeApi) -> None:
    """Mutant: send one key for all targets; the second gets the first one's answer and nothing is done to it."""
    hostler("node", "reboot", "n1", "--key", "k", "--reason", "r")
    hostler("node", "reboot", "n1", "n2", "--key", "k", "--reason", "r")
    assert [body["key"] for body in api.posted()] == ["k", "k/n1", "k/n2"]


def test_without_a_key_each_request_is_one_of_its_own(api: FakeApi) -> None:
    hostler("node", "reboot", "n1", "n2", "--reason", "r")
    keys = [body["key"] for body in api.posted()]
    assert len(set(keys)) == 2
    assert all(len(key) <= 100 for key in keys)


def test_a_dry_run_says_plan_radius_and_waits_and_carries_no_key(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    detail = {"plan": "cordon → drain", "nodes": "n1,n2", "gpus": "16", "waits_for": "job 7 runs here"}
    answer = {"granted": True, "text": "would reboot 2 node(s)", "detail": detail}
    api.answers["POST /v1/intents"] = [lambda _: web.json_response(answer)]
    assert hostler("node", "reboot", "rack:r1", "--dry-run", "--reason", "r") == ExitCode.ok
    (body,) = api.posted()
    assert (body["dry_run"], body["key"]) == (True, "")
    assert capsys.readouterr().out.splitlines() == [
        "rack:r1: would reboot 2 node(s)",
        "  plan       cordon → drain",
        "  disturbs   2 node(s), 16 GPUs: n1, n2",
        "  waits for  job 7 runs here",
    ]


def test_answers_are_also_for_programs(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.answers["POST /v1/intents"] = [lambda a: refused("not that one") if a.body["target"] == "n1" else granted(a)]
    assert hostler("node", "cordon", "n1", "n2", "-o", "json", "--reason", "r") == ExitCode.refused
    said = capsys.readouterr()
    assert [(i["target"], i["granted"]) for i in json.loads(said.out)["items"]] == [("n1", False), ("n2", True)]
    assert "not that one" in said.err


def test_a_plan_is_approved_by_its_id_or_its_node(api: FakeApi) -> None:
    api.says("GET /v1/plans", page({"id": "p7", "node": "n1"}))
    hostler("plan", "approve", "p7", "--reason", "r")
    hostler("plan", "reject", "n2", "--hours", "2", "--reason", "r")
    assert [(b["act"], b["target"]) for b in api.posted()] == [
        ({"verb": "approve"}, "n1"),
        ({"verb": "reject", "hours": 2.0}, "n2"),
    ]


@pytest.mark.parametrize(
    ("words", "route", "key"),
    [
        ("node register", "/v1/nodes", "nodes"),
        ("adopt", "/v1/adopt", "nodes"),
        ("asset register", "/v1/assets", "assets"),
    ],
)
@pytest.mark.parametrize("text", ['[{"sku": "h100"}]', "- {sku: h100}", "KEY:\n  - sku: h100\n"])
def test_inventories_are_read_as_json_and_yaml(
    api: FakeApi, tmp_path: Path, words: str, route: str, key: str, text: str
) -> None:
    file = tmp_path / "fleet"
    file.write_text(text.replace("KEY", key))
    api.says(f"POST {route}", {"granted": True, "text": "1 node(s) registered", "detail": {}})
    assert hostler(*words.split(), str(file), "--reason", "new row") == ExitCode.ok
    (body,) = api.posted()
    assert body[key] == [{"sku": "h100"}]
    assert body["reason"] == "new row"


@pytest.mark.parametrize(("text", "where"), [("[{,]", ":1:"), ("a: [\nb", ":2:"), ("a: 1", ""), ("[1]", "")])
def test_an_inventory_that_is_none_is_named_with_its_line(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, where: str
) -> None:
    file = tmp_path / "fleet"
    file.write_text(text)
    assert hostler("node", "register", str(file), "--reason", "r") == ExitCode.usage
    assert f"{file}{where}" in capsys.readouterr().err
    assert api.asked == []


def test_documents_are_activated_by_their_file_names(api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("policy: {}")
    (tmp_path / "b.yaml").write_text("pools: {}")
    api.says("POST /v1/config", {"granted": True, "text": "active", "detail": {}})
    files = [str(tmp_path / name) for name in ("a.yaml", "b.yaml")]
    assert hostler("policy", "activate", *files, "--reason", "r", "--key", "k") == ExitCode.ok
    (body,) = api.posted()
    assert body["documents"] == {"a.yaml": "policy: {}", "b.yaml": "pools: {}"}
    assert body["key"] == "k"


def test_two_documents_of_one_name_are_refused(api: FakeApi, tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.yaml").write_text("policy: {}")
    files = [str(tmp_path / folder / "a.yaml") for folder in ("x", "y")]
    assert hostler("policy", "activate", *files, "--reason", "r") == ExitCode.usage
    assert api.asked == []


def test_a_list_may_be_one_act_and_what_waits_for_a_second_person_says_so(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {"granted": False, "text": "waits for approval a-7 by a second person", "detail": {"approval": "a-7"}}
    api.answers["POST /v1/intents"] = [lambda _: web.json_response(told, status=202)]
    assert hostler("node", "reboot", "n1", "n2", "--as-one", "--reason", "because") == ExitCode.waits
    (body,) = api.posted()
    assert (body["target"], body["nodes"]) == ("nodes", ["n1", "n2"])
    assert "approval a-7" in capsys.readouterr().err
