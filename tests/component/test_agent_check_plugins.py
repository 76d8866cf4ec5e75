"""A site's own checks: who may install them, what their answers mean, and that nothing they do looks like health."""

import contextlib
import json
import os
import resource
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.agent.check_plugins import (
    AFFIRM_S,
    AGAIN_S,
    MAX_PLUGINS,
    Refused,
    Rounds,
    Schedule,
    installed,
    observations,
    read_answers,
    run_plugin,
    starts_after_s,
)
from hostler.agent.limited_command import CommandEnd, CommandLimits, run_bounded
from hostler.core.state.model import Verdict

LIMITS = CommandLimits(5.0, 512 * 1024 * 1024, 5)
HERE = os.getuid()


def a_check(directory: Path, body: str, name: str = "psu", mode: int = 0o755) -> Path:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(mode)
    return path


def a_directory(tmp_path: Path) -> Path:
    directory = tmp_path / "checks.d"
    directory.mkdir(mode=0o755)
    for place in (directory, *directory.parents):
        if place.stat().st_uid == HERE and place.stat().st_mode & 0o022 and not place.stat().st_mode & 0o1000:
            place.chmod(0o755)
    return directory


def refused(directory: Path) -> dict[str, str]:
    return {one.name: one.why for one in installed(directory, HERE)[1]}


# who may install one


def test_a_check_of_roots_is_installed(tmp_path: Path) -> None:
    directory = a_directory(tmp_path)
    a_check(directory, "exit 0")
    (directory / "psu.json").write_text('{"every_s": 60, "memory_mib": 64}')
    (plugin,), none = installed(directory, HERE)
    assert (plugin.name, plugin.schedule.every_s, none) == ("psu", 60, ())
    assert installed(tmp_path / "absent") == ((), ())


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777, 0o722])
def test_what_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    """Mutant: only the world's bit is asked. A member of the group would then run commands as root."""
    directory = a_directory(tmp_path)
    a_check(directory, "exit 0", mode=mode)
    assert "may write it" in refused(directory)["psu"]
    (directory / "psu").chmod(0o755)
    directory.chmod(mode)
    assert "may write it" in refused(directory)[str(directory)]


def test_links_and_other_peoples_files_are_refused(tmp_path: Path) -> None:
    """Mutant: `stat` in place of `lstat`; the link's target is then another's to choose."""
    directory = a_directory(tmp_path)
    target = a_check(tmp_path, "exit 0", "target")
    (directory / "link").symlink_to(target)
    (directory / "folder").mkdir()
    os.mkfifo(directory / "pipe")
    a_check(directory, "exit 0", "quiet", mode=0o644)
    a_check(directory, "exit 0", "odd")
    (directory / "odd.json").write_text('{"every": 1}')
    a_check(directory, "exit 0", "hasty")
    (directory / "hasty.json").write_text('{"every_s": 0.001}')
    why = refused(directory)
    assert why["link"] == "it is a symbolic link"
    assert why["folder"] == why["pipe"] == "it is no regular file"
    assert why["quiet"] == "it is not executable"
    assert "every" in why["odd"]
    assert "every_s is 10 to" in why["hasty"]
    assert installed(directory, HERE)[0] == ()
    if HERE == 0:
        foreign = a_check(directory, "exit 0", "foreign")
        os.chown(foreign, 12345, 12345)
        assert "belongs to user 12345" in refused(directory)["foreign"]


def test_whoever_may_write_above_could_exchange_it_all(tmp_path: Path) -> None:
    """Mutant: only the directory itself is asked about."""
    above = tmp_path / "above"
    above.mkdir()
    directory = a_directory(above)
    a_check(directory, "exit 0")
    above.chmod(0o777)
    assert "may write it" in refused(directory)[str(directory)]
    above.chmod(0o1777)  # sticky, as /tmp: nobody may take away what is another's
    assert refused(directory) == {}


@pytest.mark.parametrize("how", ["written by others", "a link", "too long"])
def test_the_file_with_its_schedule_is_roots_too(tmp_path: Path, how: str) -> None:
    """Mutant: the sidecar is read whoever wrote it; a day of processor time is then anybody's to give."""
    directory = a_directory(tmp_path)
    a_check(directory, "exit 0")
    sidecar = directory / "psu.json"
    if how == "a link":
        (tmp_path / "theirs").write_text("{}")
        sidecar.symlink_to(tmp_path / "theirs")
    else:
        sidecar.write_text("{" + " " * 5000 + "}" if how == "too long" else "{}")
        sidecar.chmod(0o666 if how == "written by others" else 0o644)
    assert refused(directory)["psu"].startswith("psu.json: ")
    assert installed(directory, HERE)[0] == ()


def test_there_are_no_more_checks_than_the_limit(tmp_path: Path) -> None:
    directory = a_directory(tmp_path)
    for number in range(MAX_PLUGINS + 3):
        a_check(directory, "exit 0", f"check{number:03}")
    plugins, others = installed(directory, HERE)
    assert len(plugins) == MAX_PLUGINS
    assert [one.why for one in others] == [f"more than {MAX_PLUGINS} checks"] * 3


def test_its_own_schedule_limits_it(tmp_path: Path) -> None:
    """Mutant: every check gets the default time."""
    directory = a_directory(tmp_path)
    a_check(directory, "sleep 60")
    (directory / "psu.json").write_text('{"timeout_s": 1}')
    (plugin,), _ = installed(directory, HERE)
    (answer,) = run_plugin(plugin)
    assert answer.detail == "it did not end within 1 s"


def test_files_that_it_writes_and_opens_are_limited(tmp_path: Path) -> None:
    """Mutant: no --fsize, no --nofile; a check fills the node's disk."""
    big = run_bounded(("sh", "-c", f"yes | head -c 40000000 > {tmp_path}/big; echo OK"), LIMITS)
    assert (tmp_path / "big").stat().st_size <= 16 * 1024 * 1024, big
    many = "import os\ntry:\n while True: os.open('/dev/null', 0)\nexcept OSError as e: print(e.errno)"
    assert run_bounded(("python3", "-c", many), LIMITS).output.strip() == b"24"


def test_a_directory_behind_a_link_is_refused(tmp_path: Path) -> None:
    directory = a_directory(tmp_path)
    a_check(directory, "exit 0")
    (tmp_path / "way").symlink_to(directory)
    assert installed(tmp_path / "way", HERE)[0] == ()


# what an answer means


@pytest.mark.parametrize(
    ("body", "verdict", "detail"),
    [
        ("echo 'OK - 6 supplies | w=1900'; exit 0", "passed", "OK - 6 supplies"),
        ("echo 'WARNING - hot'; exit 1", "failed", "WARNING - hot"),
        ("echo 'CRITICAL - dark'; exit 2", "failed", "CRITICAL - dark"),
        ("echo 'UNKNOWN'; exit 3", "inconclusive", "UNKNOWN"),
        ("exit 4", "inconclusive", "ended with 4"),
        ("exit 127", "inconclusive", "ended with 127"),
        ("kill -SEGV $$", "inconclusive", "signal 11"),
        ('echo \'{"verdict": "passed"}\'', "passed", ""),
        ('echo \'{"verdict": "failed", "detail": "cell 3"}\'', "failed", "cell 3"),
        ('echo \'{"verdict": "passed"}\'; exit 2', "inconclusive", "ended with 2"),
        ('echo \'{"verdict": "fine"}\'', "inconclusive", "cannot be read"),
        ('echo \'{"verdict": "passed"\'', "inconclusive", "cannot be read"),
        ('echo \'{"verdict": "passed"}\'; echo nonsense', "inconclusive", "cannot be read"),
    ],
)
def test_an_answer_is_read_as_monitoring_systems_mean_it(tmp_path: Path, body: str, verdict: str, detail: str) -> None:
    """Mutant: a code that nobody defined is passed."""
    directory = a_directory(tmp_path)
    a_check(directory, body)
    (plugin,), _ = installed(directory, HERE)
    (answer,) = run_plugin(plugin)
    assert answer.verdict == verdict
    assert detail in answer.detail


def test_json_lines_tell_of_several_parts(tmp_path: Path) -> None:
    lines = [{"verdict": "failed", "part": "psu1", "detail": "dark"}, {"verdict": "passed", "part": "psu2"}]
    answers = read_answers(CommandEnd(0, "\n".join(map(json.dumps, lines)).encode()))
    assert [(one.part, one.verdict) for one in answers] == [("psu1", "failed"), ("psu2", "passed")]
    many = "\n".join([json.dumps(lines[1])] * 65)
    assert [one.verdict for one in read_answers(CommandEnd(0, many.encode()))] == [Verdict.inconclusive]


@given(st.binary(max_size=300), st.integers(-20, 260))
def test_whatever_it_prints_only_a_clear_answer_is_passed(output: bytes, code: int) -> None:
    """Mutant: an unreadable line is left out and the others count."""
    answers = read_answers(CommandEnd(code, output))
    assert answers
    assert all(len(answer.detail) <= 500 and answer.detail.isprintable() for answer in answers)
    if code != 0:
        assert all(answer.verdict is not Verdict.passed for answer in answers)


@pytest.mark.parametrize(
    ("script", "trouble"),
    [
        ("while :; do :; done", "signal 9"),
        ("yes", "printed more than 64 KiB"),
        ("yes >&2", "printed more than 64 KiB"),
        ("sleep 100 & exit 0", "what it started did not end"),
        ("sleep 100", "did not end within"),
    ],
)
def test_limits_hold_and_nothing_stays_behind(tmp_path: Path, script: str, trouble: str) -> None:
    """Mutant: only the child is killed; what it started runs on."""
    path = a_check(tmp_path, f"echo $$ > {tmp_path}/group\n{script}", "greedy")
    limits = CommandLimits(60.0 if ":" in script else 1.0, 256 * 1024 * 1024, 1)
    ended = run_bounded((str(path),), limits)
    (answer,) = read_answers(ended)
    assert answer.verdict is Verdict.inconclusive
    assert trouble in answer.detail
    group = int((tmp_path / "group").read_text())
    until = time.monotonic() + 10
    while time.monotonic() < until and _alive(group):
        time.sleep(0.02)
    assert not _alive(group)


@pytest.mark.parametrize(
    "escape",
    [
        "setsid sleep 300 </dev/null >/dev/null 2>&1 &",
        "setsid sh -c 'setsid sleep 300 & sleep 300' </dev/null >/dev/null 2>&1 &",
        "(setsid sleep 300 </dev/null >/dev/null 2>&1 &) ; sleep 0.1",
    ],
)
@pytest.mark.parametrize("answers", ["echo OK", "sleep 300"])
def test_who_leaves_the_session_ends_with_it_all_the_same(tmp_path: Path, escape: str, answers: str) -> None:
    """Mutants: the keeper adopts nobody (no PR_SET_CHILD_SUBREAPER); it kills the group and not its children."""
    mark = f"HOSTLER_TEST_MARK={tmp_path}"
    path = a_check(tmp_path, f"export {mark}\n{escape}\n{answers}", "escapes")
    ended = run_bounded((str(path),), CommandLimits(1.0, 256 * 1024 * 1024, 10))
    assert ended.output == (b"OK\n" if answers == "echo OK" else b"")
    assert bool(ended.trouble) == (answers != "echo OK")
    until = time.monotonic() + 10
    while time.monotonic() < until and _marked(mark):
        time.sleep(0.02)
    assert not _marked(mark)


def test_what_it_started_ends_with_the_agent_too(tmp_path: Path) -> None:
    """Mutant: without PR_SET_PDEATHSIG it runs on while nobody waits for it."""
    mark = f"HOSTLER_TEST_MARK={tmp_path}"
    path = a_check(tmp_path, f"export {mark}\nsetsid sleep 300 &\nsleep 300", "orphan")
    code = (
        "from hostler.agent.limited_command import CommandLimits, run_bounded; "
        f"run_bounded(({str(path)!r},), CommandLimits(300.0, 268435456, 10))"
    )
    agent = subprocess.Popen([sys.executable, "-c", code])
    until = time.monotonic() + 20
    while time.monotonic() < until and len(_marked(mark)) < 2:
        time.sleep(0.02)
    assert _marked(mark)
    agent.kill()
    agent.wait()
    while time.monotonic() < until and _marked(mark):
        time.sleep(0.02)
    assert not _marked(mark)


@pytest.mark.parametrize(
    "program",
    [
        "raise RuntimeError('x' * 2000)",
        "print('OK so far', flush=True); {}['psu']",
        "import json; print(json.dumps({'verdict': 'failed'}), flush=True); {}['psu']",
        "import there_is_no_such_module",
        "def broken(:",
    ],
)
def test_a_python_program_that_breaks_off_has_found_nothing(tmp_path: Path, program: str) -> None:
    """Python ends such a program with 1, which is a warning's code. Mutant: only what is printed and the code count."""
    script = tmp_path / "program.py"
    script.write_text(program)
    (answer,) = read_answers(run_bounded((sys.executable, str(script)), LIMITS))
    assert answer.verdict is Verdict.inconclusive
    assert "broke off" in answer.detail


def test_a_program_that_reports_another_ones_crash_is_believed(tmp_path: Path) -> None:
    """Text that is printed as the answer is no complaint of the interpreter."""
    path = a_check(tmp_path, "echo 'CRITICAL - Traceback (most recent call last): in the log'; exit 2")
    (answer,) = read_answers(run_bounded((str(path),), LIMITS))
    assert answer.verdict is Verdict.failed


def _marked(mark: str) -> list[int]:
    """Processes with this in their environment."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in environment.read_bytes().split(b"\0"):
                found.append(int(environment.parent.name))
    return found


def _alive(group: int) -> bool:
    """Whether anybody of the process group still runs; who has ended and waits to be reaped does not."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] not in "ZX":
            return True
    return False


def test_memory_is_limited() -> None:
    code = "b = bytearray(600 * 1024 * 1024); print('OK')"
    ended = run_bounded(("python3", "-c", code), CommandLimits(20.0, 300 * 1024 * 1024, 20))
    assert all(answer.verdict is not Verdict.passed for answer in read_answers(ended))


def test_it_is_given_nothing_of_ours() -> None:
    os.environ["HOSTLER_SECRET"] = "s3cret"
    try:
        ended = run_bounded(("env",), LIMITS)
    finally:
        del os.environ["HOSTLER_SECRET"]
    assert b"PATH=" in ended.output
    assert b"s3cret" not in ended.output


# when it runs and what is told


def test_a_verdict_is_told_once_it_has_repeated_itself(tmp_path: Path) -> None:
    """Mutant: the first answer is told; one that fails once in a thousand runs costs a node its place."""
    directory = a_directory(tmp_path)
    a_check(directory, f"test -e {tmp_path}/bad && exit 2; exit 0")
    (directory / "psu.json").write_text('{"every_s": 300, "jitter_s": 0}')
    rounds, now_s = Rounds(directory, "n1", HERE), 0.0
    told: list[tuple[float, object]] = []

    def turn() -> None:
        told.extend((now_s, seen.facts["verdict"]) for seen in rounds.turn(now_s)[0])

    turn()
    assert told == []
    now_s += AGAIN_S
    turn()
    assert told == [(AGAIN_S, "passed")]
    now_s += 300
    (tmp_path / "bad").touch()
    turn()
    (tmp_path / "bad").unlink()
    now_s += AGAIN_S
    turn()
    assert len(told) == 1, "it failed once"
    (tmp_path / "bad").touch()
    now_s += 300
    turn()
    now_s += AGAIN_S
    turn()
    assert told[-1] == (now_s, "failed")


def test_what_is_refused_is_shown_and_said_once(tmp_path: Path) -> None:
    """Mutant: `refusals` are dropped; whoever relies on the check never learns that it does not run."""
    directory = a_directory(tmp_path)
    a_check(directory, "exit 0", mode=0o777)
    rounds = Rounds(directory, "n1", HERE)
    (told,), _ = rounds.turn(0.0)
    assert (told.facts["verdict"], "is not run" in told.text) == ("inconclusive", True)
    assert rounds.turn(1.0)[0] == []
    assert installed(directory, HERE)[1] == (Refused("psu", refused(directory)["psu"]),)


def test_what_stands_is_told_again_every_hour(tmp_path: Path) -> None:
    """Mutant: only changes are told; a controller that had lost it, or doubts it, would never hear of it again."""
    directory = a_directory(tmp_path)
    a_check(directory, "exit 2")
    (directory / "psu.json").write_text('{"every_s": 300, "jitter_s": 0}')
    rounds = Rounds(directory, "n1", HERE)
    told = [now_s for now_s in range(0, 2 * 3600 + 60, 15) for _ in rounds.turn(float(now_s))[0]]
    assert len(told) == 3
    assert all(AFFIRM_S <= later - one <= AFFIRM_S + 300 + AGAIN_S for one, later in pairwise(told))


def found_something(directory: Path, body: str) -> Rounds:
    """The rounds after a check has told what it prints."""
    a_check(directory, body)
    (directory / "psu.json").write_text('{"jitter_s": 0}')
    rounds = Rounds(directory, "n1", HERE)
    rounds.turn(0.0)
    assert rounds.turn(AGAIN_S)[0]
    return rounds


@pytest.mark.parametrize("restarted", [False, True])
def test_a_check_that_is_taken_away_leaves_what_it_found_stale(tmp_path: Path, restarted: bool) -> None:
    """Mutants: it is forgotten, and what it found stands for good; an agent that restarts meanwhile forgets it."""
    directory = a_directory(tmp_path)
    lines = [{"verdict": "failed", "part": "psu1"}, {"verdict": "passed", "part": "psu2"}]
    rounds = found_something(directory, "\n".join(f"echo '{json.dumps(line)}'" for line in lines))
    (directory / "psu").unlink()
    if restarted:
        rounds = Rounds(directory, "n1", HERE, kept=rounds.cursor()[1])
    (seen,) = rounds.turn(60.0)[0]
    assert (seen.facts["check"], seen.facts["part"], seen.facts["verdict"]) == ("psu", "psu1", "stale")
    assert rounds.turn(120.0)[0] == []


def test_so_is_what_another_watcher_said_when_nobody_hands_it_on_any_more(tmp_path: Path) -> None:
    directory = a_directory(tmp_path)
    said = {"shape": "node_conditions", "document": {"type": "KernelDeadlock", "status": "True"}}
    rounds = found_something(directory, f"echo '{json.dumps(said)}'")
    (directory / "psu").unlink()
    (seen,) = rounds.turn(60.0)[0]
    assert (seen.kind, seen.facts["check"], seen.facts["verdict"]) == ("verdict", "psu", "stale")


def test_a_check_that_had_found_nothing_may_go_without_a_word(tmp_path: Path) -> None:
    directory = a_directory(tmp_path)
    rounds = found_something(directory, "exit 0")
    (directory / "psu").unlink()
    assert rounds.turn(60.0)[0] == []


def test_a_directory_that_cannot_be_trusted_takes_no_check_away(tmp_path: Path) -> None:
    """The directory's contents are unknown then. Mutant: a chmod of the directory makes every finding stale at once."""
    directory = a_directory(tmp_path)
    rounds = found_something(directory, "exit 2")
    directory.chmod(0o777)
    assert [seen.facts["verdict"] for seen in rounds.turn(60.0)[0]] == ["inconclusive"]
    directory.chmod(0o755)
    (seen,) = rounds.turn(61.0)[0]
    assert (seen.facts["check"], seen.facts["verdict"]) == (str(directory), "passed"), "it is well again"


@pytest.mark.parametrize("kept", [b"", b"nonsense", b"[1]", b"\xff"])
def test_what_was_kept_may_be_unreadable(tmp_path: Path, kept: bytes) -> None:
    assert Rounds(a_directory(tmp_path), "n1", HERE, kept=kept).turn(0.0)[0] == []


def test_nodes_do_not_run_a_check_together(tmp_path: Path) -> None:
    directory = a_directory(tmp_path)
    a_check(directory, "exit 0")
    (plugin,), _ = installed(directory, HERE)
    starts = {starts_after_s(plugin, f"n{n}") for n in range(50)}
    assert len(starts) == 50
    assert all(0 <= start < Schedule().jitter_s for start in starts)


def test_another_watchers_words_are_handed_on_whole(tmp_path: Path) -> None:
    """Mutant: a document that is too long is cut; half a condition may say the opposite."""
    said = {"type": "KernelDeadlock", "status": "True"}
    directory = a_directory(tmp_path)
    a_check(directory, f"echo '{json.dumps({'shape': 'node_conditions', 'document': said})}'")
    (plugin,), _ = installed(directory, HERE)
    could, seen = observations(plugin, run_plugin(plugin), 1.0)
    assert (could.kind, could.facts["verdict"]) == ("verdict", "passed"), "it could not be asked before, perhaps"
    assert (seen.kind, seen.facts["shape"], json.loads(seen.text)) == ("external", "node_conditions", said)
    long = {"shape": "node_conditions", "document": {**said, "message": "x" * 5000}}
    (answer,) = read_answers(CommandEnd(0, json.dumps(long).encode()))
    assert (answer.shape, answer.verdict) == ("", Verdict.inconclusive)
    (answer,) = read_answers(CommandEnd(0, b'{"shape": "node_conditions"}'))
    assert (answer.shape, answer.verdict) == ("", Verdict.inconclusive)


def test_a_process_with_many_open_files_runs_checks_all_the_same() -> None:
    """Mutant: select(), which knows no descriptor above 1023: one check then ended the whole agent."""
    low, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1_100
    if most != resource.RLIM_INFINITY and most < wanted + 64:
        pytest.skip(f"needs {wanted + 64} open files, {most} are allowed: ulimit -n")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(low, wanted + 64), most))
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(wanted)]
    try:
        ended = run_bounded(("/bin/echo", "well"), LIMITS)
    finally:
        for file in held:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (low, most))
    assert (ended.code, ended.output, ended.trouble) == (0, b"well\n", "")
