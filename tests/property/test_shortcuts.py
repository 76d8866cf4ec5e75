"""Texts told without a closer look are told as the closer look would tell it, in every order of questions."""

from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st

from hostler.core.diagnose.judge import judge, says_nothing
from hostler.core.diagnose.kernel_log import decode, malformed
from hostler.core.state.assets import Position
from hostler.core.state.events import INTRODUCED
from hostler.core.state.fleet_index import Index
from hostler.core.state.live_state import Release
from hostler.core.state.model import Node, Observation, Phase
from hostler.core.state.overlay_table import Table
from hostler.logs.secret_patterns import certainly_none, redact
from tests.secret_examples import HARMLESS, SECRETS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NODE = Node("n1", Position("c1"), sku="h100", phase=Phase.production, phase_since=NOW, registered_at=NOW)
XID = "NVRM: Xid (PCI:0000:4c:00): 79, pid=1, name=a, GPU has fallen off the bus."
PIECES = (
    *("NVRM: ", "Xid (", "PCI:0000:4c:00", "): 79, pid=1", XID, "nvidia-nvswitch3: SXid (PCI:0000:4c:00): 12028, "),
    *("<4>", "[ 12.5] ", "Mar  4 10:00:00 n1 kernel: ", "Z", "a", "\n", "\0", " ", "\r", "systemd[1]: Started."),
    *(
        "message repeated 3 times: [",
        "]",
        "EXT4-fs error (device sda1)",
        "Out of memory: Killed process 1",
        "hostler-drill",
    ),
)
LINES = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
KEYS = st.sampled_from("abcd")


@given(
    LINES | st.text(max_size=40), st.sampled_from([0, 1, None]), st.sampled_from(["kernel_log", "agent", "new kind"])
)
@example("x" * 70_000, 0, "kernel_log")
def test_what_says_nothing_is_judged_to_be_nothing(text: str, facility: int | None, kind: str) -> None:
    """Mutants: a line is ordinary whatever its length; an observation of any kind is a line."""
    one = Observation("n1", kind, "agent", "s", 1, text=text, facility=facility, received=NOW)
    assert not says_nothing(one) or judge(one, NODE, None) == ()


def test_nearly_every_line_says_nothing_and_a_crash_record_does_not() -> None:
    """Mutants: nothing is ordinary; what a dead kernel left is an ordinary line."""
    line = Observation("n1", "kernel_log", "agent", "s", 1, text="systemd[1]: Started Session 4.", facility=0)
    crash = Observation("n1", "kernel_log", "agent", "s", 1, facility=0, facts={"pstore": "dmesg-1"})
    assert (says_nothing(line), says_nothing(crash)) == (True, False)


@given(LINES)
@example(XID)
@example(f"<4>{XID}\nNVRM: Xid (")
def test_a_line_that_was_decoded_is_as_malformed_as_one_that_was_not(text: str) -> None:
    """Mutant: what another line of the text says counts for a line that cannot be read."""
    assert malformed(text, decode(text)) == malformed(f"{text}\n", decode(f"{text}\n"))
    beside = f"{XID}\nNVRM: Xid (cut"
    assert malformed(beside, decode(beside)) == "NVRM: Xid (cut"


@given(st.lists(st.sampled_from([*SECRETS, *HARMLESS]) | LINES | st.text(max_size=70), max_size=5))
@example(["", "pKvURIxJVi2CgRXROh/M6pJ/UrTVRZKX+LQ+QtqJI4vBNibkPcs43bCCSIkn7JBPtCBXRDmD"])
@example(["AKI", "AIOSFODNN7EXAMPLE1"])
def test_texts_without_a_sign_of_a_secret_are_left_as_they_are(texts: list[str]) -> None:
    """Mutants: only the first text is looked at; signs are looked for in capitals; a lone long word is none."""
    assert not certainly_none(texts) or [redact(text) for text in texts] == texts


def test_ordinary_texts_are_told_at_once() -> None:
    """Mutant: nothing is ever certain, and each text is looked at by itself again."""
    assert certainly_none(["systemd[1]: Started Session 4 of User root.", "", "x" * 59])


@given(st.lists(st.tuples(KEYS, st.none() | st.integers()) | st.sampled_from(["merge", "drop"]), max_size=30))
def test_a_table_counts_what_it_lists(steps: list[tuple[str, int | None] | str]) -> None:
    """Mutants: a key set twice counts twice; one deleted and put again is lost; `drop` keeps the count."""
    table: Table[int] = Table({"a": 1})
    for step in steps:
        if isinstance(step, tuple):
            table.put(*step)
        else:
            getattr(table, step)()
        assert len(table) == len(list(table))


def test_a_release_answers_as_its_list_of_formats() -> None:
    """Mutants: the first answer stands for every name; a format counts from the next one on."""
    release = Release()
    for name in {name for name, _ in INTRODUCED}:
        versions = {version: came for (known, version), came in INTRODUCED.items() if known == name}
        for cell in range(1, release.reads + 1):
            expected = max((version for version, came in versions.items() if came <= cell), default=1)
            assert (release.version_for(name, cell), release.newest(name)) == (expected, max(versions))
            assert release.version_for(name, cell) == expected
    assert (release.newest("no such event"), release == Release()) == (1, True)


MOVES = st.lists(
    st.tuples(st.sampled_from(["add", "add", "remove"]), st.sampled_from("ab"), st.sampled_from("xyz"))
    | st.sampled_from([("merge",), ("merge",), ("drop",)]),
    min_size=6,
    max_size=30,
)


@given(MOVES)
@example([("add", "a", "x"), ("merge",), ("add", "a", "y"), ("merge",)])
@example([("add", "a", "x"), ("merge",), ("remove", "a", "x"), ("merge",)])
def test_an_index_lists_what_a_set_for_each_key_would(moves: list[tuple[str, ...]]) -> None:
    """Mutants: the second member takes the first one's place; a key whose only member goes stays; `drop` keeps it."""
    index, kept, now = Index(), dict[str, set[str]](), dict[str, set[str]]()
    for name, *words in moves:
        getattr(index, name)(*words)
        if name == "add":
            now.setdefault(words[0], set()).add(words[1])
        elif name == "remove":
            now.setdefault(words[0], set()).discard(words[1])
        else:
            source = now if name == "merge" else kept
            kept = {key: set(members) for key, members in source.items()}
            now = {key: set(members) for key, members in source.items()}
        for key in "abcd":
            assert index.members(key) == sorted(now.get(key, ()))
            assert index.count(key) == len(now.get(key, ()))
            assert sorted(index.committed(key)) == sorted(kept.get(key, ()))
        assert index.keys() == sorted(key for key, members in now.items() if members)
