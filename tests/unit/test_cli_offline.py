"""Commands that need no server: checking, decoding, tokens, simulation, and the generated reference."""

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from hostler.agent.main import AgentSettings, settings_from
from hostler.cli.command_errors import CommandError
from hostler.cli.commands import kernel_log, run
from hostler.cli.exit_codes import MEANINGS, ExitCode
from hostler.core.diagnose.kernel_log import TEXT_LIMIT_CHARS
from hostler.journal.sqlite import SqliteJournal
from hostler.server.tokens import Role, TokenStore
from tests.cli_api import hostler, page, serving, words

pytestmark = pytest.mark.usefixtures("docstrings_read_once")


LINE = "NVRM: Xid (PCI:0000:4c:00): 79, pid=4711, name=trainer, GPU has fallen off the bus."
POLICY = "policy:\n  rules:\n    gpu.thermal: {remedy: REMEDY}\n  rungs: {}\n"


@pytest.mark.parametrize("command", list(words()), ids=" ".join)
def test_every_command_explains_itself(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert hostler(*command, "--help") == ExitCode.ok
    said = capsys.readouterr()
    assert said.out.startswith(f"Usage: hostler {' '.join(command)}")
    assert len(said.out.splitlines()) > 2, "usage, an empty line, and what it does"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (("nodd",), 'Did you mean "node"'),
        (("node", "lst"), "list"),
        (("node", "list", "--colour"), "--colour"),
        (("node", "list", "-o", "xml"), "xml"),
        (("hold", "release"), "hold"),
    ],
)
def test_a_wrong_command_line_is_told_apart_from_everything_else(
    line: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hostler(*line) == ExitCode.usage
    out, err = capsys.readouterr()
    assert out == ""
    assert said.lower() in err.lower()
    assert "--help" in err


def test_every_exit_status_has_a_meaning() -> None:
    assert set(MEANINGS) == set(ExitCode)


def test_a_sound_policy_is_called_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.yaml").write_text(POLICY.replace("REMEDY", "reboot"))
    assert hostler("policy", "check", str(tmp_path / "p.yaml")) == ExitCode.ok
    assert capsys.readouterr().out.startswith("sound: 1 rules")


def test_each_problem_has_its_line_and_what_to_write_instead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.yaml").write_text(POLICY.replace("REMEDY", "dance"))
    assert hostler("policy", "check", str(tmp_path / "p.yaml")) == ExitCode.usage
    assert re.match(r"p\.yaml:3: no remedy 'dance'; write one of ", capsys.readouterr().out)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"policy: \xff")
    assert hostler("policy", "check", str(tmp_path / "none.yaml")) == ExitCode.usage
    assert hostler("policy", "check", str(tmp_path / "latin.yaml")) == ExitCode.usage
    assert hostler("policy", "check") == ExitCode.usage
    assert re.search(r"none\.yaml: No such file.*latin\.yaml: not UTF-8 at byte 8", capsys.readouterr().err, re.DOTALL)


def test_the_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert hostler("policy", "schema") == ExitCode.ok
    assert json.loads(capsys.readouterr().out)["properties"].keys() == {"policy", "skus", "pools", "routes", "boot"}


def test_a_log_is_decoded_from_a_pipe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"usb 1-4: new device\n{LINE}\n".encode())))
    assert hostler("kernel-log", "decode", "-o", "jsonl") == ExitCode.ok
    (found,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (found["kind"], found["code"], found["known"], found["pci"]) == ("xid", 79, True, "0000:4c:00")
    assert (found["action"], found["pid"], found["process"]) == ("RESTART_BM", 4711, "trainer")


def test_a_log_with_broken_bytes_is_read_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutant: insist on UTF-8; whoever writes one bad byte to the log then hides every fault."""
    (tmp_path / "log").write_bytes(b"garbage \xff\xfe\n" + LINE.encode())
    assert hostler("kernel-log", "decode", str(tmp_path / "log"), "-o", "jsonl") == ExitCode.ok
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_each_case_gives_its_findings_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [{"line": LINE}, {"line": "nothing"}, {"line": f"{LINE}\n{LINE.replace('4c', '4d')}"}]
    file = tmp_path / "cases.jsonl"
    file.write_text("".join(json.dumps(case) + "\n" for case in cases))
    assert hostler("kernel-log", "decode", str(file), "--cases", "-o", "jsonl") == ExitCode.ok
    found = [json.loads(line)["findings"] for line in capsys.readouterr().out.splitlines()]
    assert [[one["pci"] for one in findings] for findings in found] == [
        ["0000:4c:00"],
        [],
        ["0000:4c:00", "0000:4d:00"],
    ]


def test_a_case_is_read_whole_whatever_it_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Mutants: take every sign that ends a line somewhere for the end of a case; read only what the decoder takes."""
    filler = "usb 1-4: new device\n" * (TEXT_LIMIT_CHARS // 10)
    file = tmp_path / "cases.jsonl"
    cases = ({"line": f"{LINE} \u2028\x85"}, {"line": filler + LINE})
    file.write_text("\n\n".join(json.dumps(case, ensure_ascii=False) for case in cases), "utf-8")
    assert hostler("kernel-log", "decode", str(file), "--cases", "-o", "jsonl") == ExitCode.ok
    found = [json.loads(line)["findings"] for line in capsys.readouterr().out.splitlines()]
    assert [[one["code"] for one in findings] for findings in found] == [[79], [79]]


def test_a_case_that_is_none_is_named_by_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cases.jsonl"
    for wrong in ('{"lime": "x"}', '{"line": ["x"]}', "{"):
        file.write_text('{"line": "x"}\n' + wrong + "\n")
        assert hostler("kernel-log", "decode", str(file), "--cases") == ExitCode.usage
        assert f"{file}:2: not a case" in capsys.readouterr().err


def test_a_log_longer_than_the_decoder_reads_is_decoded_to_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutant: hand the whole log over at once; everything behind 65,536 characters is then silently healthy."""
    assert kernel_log.PIECE_CHARS < TEXT_LIMIT_CHARS
    filler = "usb 1-4: new device\n" * (TEXT_LIMIT_CHARS // 10)
    (tmp_path / "log").write_text(filler + LINE + "\n" + filler)
    hostler("kernel-log", "decode", str(tmp_path / "log"), "-o", "jsonl")
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_the_end_of_a_line_without_end_is_no_line_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutant: read on where the limit fell; whoever can write one long line then writes the kernel's next one."""
    (tmp_path / "log").write_text("x" * kernel_log.LINE_BYTES + LINE + "\n" + LINE)
    hostler("kernel-log", "decode", str(tmp_path / "log"), "-o", "jsonl")
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert hostler("kernel-log", "decode", str(tmp_path / "none")) == ExitCode.usage
    assert "none: No such file" in capsys.readouterr().err


def test_a_sound_journal_is_called_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "journal.db"
    SqliteJournal(path).close()
    assert hostler("journal", "check", str(path)) == ExitCode.ok
    assert capsys.readouterr().out.endswith("sound\n")
    assert hostler("journal", "check", str(tmp_path / "none.db")) == ExitCode.usage


def test_a_token_is_made_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    TokenStore(tmp_path / "tokens.db").close()
    at = ("--data", str(tmp_path))
    made = ("token", "create", "--role", "agent", "--name", "agent-n1", "--node", "n1", "--days", "30")
    assert hostler(*made, *at) == ExitCode.ok
    said = capsys.readouterr()
    token = said.out.strip()
    assert token.startswith("hst_")
    assert token not in said.err
    store = TokenStore(tmp_path / "tokens.db")
    who = store.verify(token)
    assert who is not None
    assert (who.role, who.grant.node) == (Role.agent, "n1")
    assert who.grant.expires is not None
    assert 29 < (who.grant.expires - datetime.now(UTC)).total_seconds() / 86_400 < 31
    assert hostler("token", "list", "-o", "json", *at) == ExitCode.ok
    listed = capsys.readouterr().out
    assert token.split("_", 2)[2] not in listed
    assert json.loads(listed)["items"][0]["token"] == who.token
    assert hostler("token", "revoke", who.token, *at) == ExitCode.ok
    assert store.verify(token) is None
    assert hostler("token", "revoke", who.token, *at) == ExitCode.not_found
    store.close()


def test_a_token_that_contradicts_itself_or_has_no_server_is_not_made(tmp_path: Path) -> None:
    """Mutant: make the token file where there is none; a mistyped --data then gives tokens that open nothing."""
    at = ("--data", str(tmp_path), "--name", "a")
    assert hostler("token", "create", "--role", "viewer", *at) == ExitCode.usage
    assert not (tmp_path / "tokens.db").exists()
    TokenStore(tmp_path / "tokens.db").close()
    assert hostler("token", "create", "--role", "agent", *at) == ExitCode.usage
    assert hostler("token", "create", "--role", "king", *at) == ExitCode.usage


def test_a_simulation_prints_clean_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert hostler("sim", "run", "--nodes", "16", "--days", "0.5", "--seed", "3", "-o", "json") == ExitCode.ok
    report = json.loads(capsys.readouterr().out)
    assert (report["nodes"], report["seed"], report["violations"]) == (16, 3, 0)


def test_a_simulation_of_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert hostler("sim", "run", "--nodes", "0") == ExitCode.usage
    assert hostler("sim", "run", "--rates", "nobody") == ExitCode.usage
    assert "llama3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("listen", "address"),
    [("127.0.0.1:8440", ("127.0.0.1", 8440)), ("[::1]:0", ("::1", 0)), ("lab.example:443", ("lab.example", 443))],
)
def test_listening_addresses(listen: str, address: tuple[str, int]) -> None:
    assert run.address_of(listen) == address


@pytest.mark.parametrize("listen", ["8440", ":8440", "host:", "host:http", "host:70000"])
def test_addresses_that_cannot_be_listened_on(listen: str) -> None:
    with pytest.raises(CommandError):
        run.address_of(listen)


def test_an_agent_without_its_identity_does_not_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert hostler("agent", "--server", "http://127.0.0.1:1", "--node", "n1") == ExitCode.usage
    assert "--token-file" in capsys.readouterr().err


def test_an_agents_defaults_are_its_settings_own() -> None:
    agent = AgentSettings("n", "s", Path("t"), Path("d"))
    ours, theirs = asdict(run.AGENT), msgspec.structs.asdict(agent)
    assert ours.pop("state_dir") == str(settings_from([]).state_dir)  # type: ignore[union-attr]
    assert {name: theirs[name] for name in ours} == ours


@pytest.mark.xdist_group("completion")  # by one worker, once
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands(shell: str, completion_script: Callable[[str], str]) -> None:
    script = completion_script(shell)
    assert "request-replacement" in script
    assert "hostler complete " in script


@pytest.mark.xdist_group("completion")
def test_bash_completes_names_that_the_server_knows_and_nothing_where_nobody_answers(
    tmp_path: Path, completion_script: Callable[[str], str]
) -> None:
    """Mutants: names are offered for options; commands are offered no more; an error lands on the prompt."""
    shim = tmp_path / "hostler"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m hostler.cli.main "$@"\n')
    shim.chmod(0o755)
    script = tmp_path / "completion"
    script.write_text(completion_script("bash"))

    def completed(server: str, *typed: str) -> list[str]:
        line = " ".join(f"'{word}'" for word in typed)
        ask = f". {script}; COMP_WORDS=({line}); COMP_CWORD={len(typed) - 1}; _hostler_names; "
        ask += "printf '%s\\n' \"${COMPREPLY[@]}\""
        env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOSTLER_SERVER": server, "HOSTLER_CONFIG": str(tmp_path / "none")}
        done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True, env=env, timeout=60)
        assert done.stderr == ""
        return done.stdout.split()

    with serving() as api:
        api.says("GET /v1/nodes", page({"id": "gpu-1"}, {"id": "gpu-2"}, {"id": "x-gpu-3"}))
        assert completed(api.url, "hostler", "node", "describe", "gpu") == ["gpu-1", "gpu-2"]
        assert [asked.query["q"] for asked in api.asked] == ["gpu"]
        assert completed(api.url, "hostler", "node", "des") == ["describe"]
        assert completed(api.url, "hostler", "node", "list", "--output", "js") == ["json", "jsonl"]
    assert completed("http://127.0.0.1:9", "hostler", "node", "describe", "gpu") == []
