"""The kernel log's records, their folding, and what survives when the reader dies anywhere."""

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hostler.agent.collectors import kmsg, line_dedup
from hostler.agent.collectors.kernel_log import Intake, LogPosition
from hostler.agent.local_observation import LocalObservation, Rank
from hostler.core.diagnose.bursts import fold
from hostler.core.diagnose.kernel_log import decode
from hostler.core.diagnose.line_filter import passes
from tests.drawing import examples

XID = b"NVRM: Xid (PCI:0000:4c:00): 79, pid=1234, GPU has fallen off the bus."


def record(sequence: int, text: bytes = XID, priority: int = 3, usec: int = 1_000_000) -> bytes:
    return b"%d,%d,%d,-;%s\n" % (priority, sequence, usec, text)


def test_a_record_with_continuation_lines() -> None:
    raw = b"6,343,1369243,-,caller=T12;mlx5_core 0000:3b:00.0: up\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n"
    parsed = kmsg.parse(raw)
    assert parsed == kmsg.KmsgRecord(
        6, 343, 1369243, "mlx5_core 0000:3b:00.0: up", "-,caller=T12", "pci", "+pci:0000:3b:00.0"
    )
    assert (parsed.facility, parsed.level) == (0, 6)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (rb"caf\xc3\xa9 \x5c done", "café \\ done"),
        (rb"comm evil\x0aNVRM: Xid", r"comm evil\x0aNVRM: Xid"),
        (
            rb"NVRM: The GPU 0000:b3:00.0\x0aNVRM: fallen off the bus",
            "NVRM: The GPU 0000:b3:00.0\nNVRM: fallen off the bus",
        ),
        (b"NVRM: x\r", "NVRM: x"),
        (b"bad \xff\xfe", r"bad \xff\xfe"),
        (b"bell \x07", r"bell \x07"),
        (rb"name=a\x0aNVRM", r"name=a\x0aNVRM"),
    ],
)
def test_escapes(raw: bytes, text: str) -> None:
    parsed = kmsg.parse(record(1, raw))
    assert parsed
    assert parsed.text == text


def test_long_text_is_cut_and_says_so() -> None:
    parsed = kmsg.parse(record(1, b"x" * 5000))
    assert parsed
    assert (len(parsed.text), parsed.truncated) == (kmsg.MAX_TEXT, True)


@given(st.binary(max_size=400))
def test_hostile_bytes_never_raise(raw: bytes) -> None:
    for piece in (raw, b"3,1,1,-;" + raw, b"3,1,1,-;NVRM:" + raw):
        parsed = kmsg.parse(piece)
        if parsed:
            parsed.text.encode()  # no lone surrogates: it must survive JSON
            assert not any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in parsed.text.replace("\n", ""))
        records, _ = kmsg.split(piece)
        list(records)


@given(st.lists(st.integers(1, 60), max_size=8), st.integers(1, 9))
def test_a_stream_splits_into_its_records_wherever_it_is_cut(sizes: list[int], step: int) -> None:
    wanted = [b"6,%d,1,-;" % n + b"t" * size for n, size in enumerate(sizes)]
    stream, rest = b"".join(raw + b"\n" for raw in wanted), b""
    got: list[bytes] = []
    for at in range(0, len(stream), step):
        records, rest = kmsg.split(rest + stream[at : at + step])
        got += records
    assert (got, rest) == (wanted, b"")


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:66:00): 32, pid=1234",
        "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 28 sourcetrack timeout error (First)",
        "watchdog: BUG: soft lockup - CPU#94 stuck for 226906s! [swapper/94:0]",
        "INFO: task python:77 blocked for more than 120 seconds.",
        "EXT4-fs (md0): Remounting filesystem read-only",
        "XFS (nvme0n1p1): Metadata I/O Error (0x17)",
        "blk_update_request: I/O error, dev sda, sector 8",
        "mce: [Hardware Error]: Machine check events logged",
        "EDAC MC0: 1 CE memory read error",
        "pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received",
        "nvme nvme4: Disabling device after reset failure: -19",
        "Out of memory: Killed process 123, UID 48, (httpd)",
        "mlx5_core 0000:d2:00.0: poll_health:174: device's health compromised",
        "VFS: file-max limit 1000000 reached",
        "nfs: server nfs-prod-01.example.com not responding, still trying",
        "python[25]: segfault at 7f ip 00 sp 00 error 4 in libnccl.so.2",
    ],
)
def test_the_sieve_keeps_what_diagnosis_may_want(line: str) -> None:
    assert passes(line.encode())


def test_the_sieve_drops_the_everyday() -> None:
    assert not passes(b"audit: type=1400 apparmor=STATUS operation=profile_load")
    assert not passes(b"random: crng reseeded due to virtual machine fork")


def line(text: str) -> LocalObservation:
    return LocalObservation("kernel_log", 1.0, text=text)


def test_words_that_say_what_happened_are_never_folded_away() -> None:
    """Mutant: NVLink 5's words are variables as all others. A storm then hides the fatal error behind the noise."""
    folder = line_dedup.LineDedup(line_dedup.DedupLimits(exact=0, patterns=4))
    line = "NVRM: Xid (PCI:0000:1b:00): 144, SAW_MVB Nonfatal XC0 i0 Link 05 (0x00000021 {} 0x0 0x0 0x0 0x0)"
    noise, fatal = (
        LocalObservation("kernel_log", 1.0, text=line.format(word)) for word in ("0x00000004", "0x00000002")
    )
    assert folder.add(noise) == noise
    assert folder.add(fatal) == fatal
    assert folder.add(noise) is None


def test_folding_keeps_xid_codes_and_addresses_apart_in_a_flood() -> None:
    """Mutants: `_VARIABLE` masks every digit, so a flood of Xid 31 swallows Xid 79; patterns are not asked."""
    folder = line_dedup.LineDedup(line_dedup.DedupLimits(exact=4, patterns=4))
    flood = [line(f"NVRM: Xid (PCI:0000:4c:00): 31, pid={pid}, name=a, Ch 00000001") for pid in range(1000)]
    assert len([seen for seen in flood if folder.add(seen)]) == 4 + 1
    assert folder.add(line("NVRM: Xid (PCI:0000:4c:00): 79, pid=5, name=a, Ch 00000001"))
    assert folder.add(line("NVRM: Xid (PCI:0000:5d:00): 31, pid=5, name=a, Ch 00000001"))


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=300))
def test_counts_in_are_counts_out(events: list[tuple[int, bool]]) -> None:
    folder = line_dedup.LineDedup(line_dedup.DedupLimits(exact=3, patterns=2))
    out: list[LocalObservation] = []
    for kind, closes in events:
        if first := folder.add(line(f"NVRM: kind {kind}")):
            out.append(first)
        if closes:
            out += folder.close(1.0)
    out += folder.close(1.0)
    lost = sum(int(seen.facts["lost"] or 0) for seen in out if seen.kind == "agent")
    assert sum(seen.count for seen in out if seen.kind != "agent") + lost == len(events)
    assert not folder.close(1.0)


PIECES = (
    b"[ 12.5] ",
    b"pid=71, ",
    b"name=a b, ",
    b"0x1F",
    b"0X1f",
    b"Ch 0a",
    b"xpid=4",
    rb"\x0d",
    b"\r",
    b"\xc3\xa9",
    b"\x07",
    b" 9",
)


@settings(max_examples=examples(15, quick=3), deadline=None)
@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=5), min_size=700, max_size=900), st.integers(600, 695))
@pytest.mark.nightly("two ways over one flood")
def test_the_short_way_of_a_flood_counts_as_the_long_way_does(lines: list[list[bytes]], told: int) -> None:
    """More different lines than there is room for. Mutants: `plain` undoes no stamp, cuts nothing, takes escapes;
    a flood that is told as sent is counted anew.
    """

    def taken() -> list[LocalObservation]:
        intake = Intake(LogPosition("b", -1, tuple(range(told, told + 3))))
        for number, pieces in enumerate(lines):
            text = b"NVRM: fault %d " % (number % 650) + b"".join(pieces)
            intake.take(record(number, pieces[0] + text if pieces and pieces[0][:1] == b"[" else text), 1.0)
        intake.take(record(len(lines), rb"NVRM: fault \x5c last"), 1.0)
        out, position = intake.finish(2.0)
        assert not position.sent
        return out

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kmsg, "plain", lambda _body: "")
        wanted = taken()
    assert taken() == wanted
    assert any(seen.facts.get("cause") == "variety" for seen in wanted)


def test_a_burst_of_800_000_is_a_handful_with_the_exact_count() -> None:
    intake, out, now_s = Intake(LogPosition("b")), [], 10.0
    for sequence in range(800_000):
        if sequence % 512 == 0:
            now_s += 0.005
            out += intake.batch(now_s)[0]
        intake.take(record(sequence), now_s)
    out += intake.finish(now_s)[0]
    assert out[0].count == 1
    assert sum(seen.count for seen in out) == 800_000
    assert len(out) <= 6


def test_a_storm_of_29_different_lines_is_29_observations_and_one_burst() -> None:
    """Mutant: fold by the Xid's code alone; the 28 other programs that the storm hit are then lost."""
    intake, out, now_s = Intake(LogPosition("b")), [], 10.0
    text = b"NVRM: Xid (PCI:0000:4c:00): 95, pid=%d, name=rank, Uncontained: LTC TAG (0x2,0x0)"
    for sequence in range(58_000):
        if sequence % 512 == 0:
            now_s += 0.005
            out += intake.batch(now_s)[0]
        intake.take(record(sequence, text % (4000 + sequence % 29)), now_s)
    out += intake.finish(now_s)[0]
    assert len({seen.text for seen in out}) == 29
    assert sum(seen.count for seen in out) == 58_000
    decoded = decode("\n".join(seen.text for seen in out))
    assert {one.code for one in decoded} == {95}
    assert len(fold(decoded)) == 1


def test_the_agents_finding_goes_beside_the_line() -> None:
    intake = Intake(LogPosition("b"))
    intake.take(record(0), 1.0)
    intake.take(record(1, b"mlx5_core 0000:1a:00.0: Link up"), 1.0)
    found = [seen.finding for seen in intake.batch(1.0)[0]]
    assert found == ["xid 79 0000:4c:00", ""]


def test_the_first_line_goes_out_at_once_with_its_age_and_provenance() -> None:
    intake = Intake(LogPosition("b"))
    intake.take(record(0, usec=4_000_000), 10.0)
    intake.take(record(1, b"NVRM: Xid (PCI:0000:4c:00): 31, from a shell", priority=12, usec=5_000_000), 10.0)
    (kernel, user), _ = intake.batch(10.0)
    assert (kernel.seen_s, kernel.facility, kernel.rank) == (4.0, 0, Rank.urgent)
    assert (user.seen_s, user.facility, user.rank) == (5.0, 1, Rank.routine)


def test_a_live_line_is_no_older_than_the_last_pause() -> None:
    """The log's clock drifts from CLOCK_MONOTONIC; mutant: `usec` is believed as it stands."""
    intake = Intake(LogPosition("b"))
    intake.drained(500.0)
    intake.take(record(0, usec=1_000_000), 500.2)
    assert intake.batch(500.2)[0][0].seen_s == 500.0


def test_user_space_cannot_crowd_out_the_kernel() -> None:
    intake = Intake(LogPosition("b"))
    for sequence in range(5000):
        intake.take(record(sequence, b"NVRM: Xid fake %d" % sequence, priority=12), 1.0)
    intake.take(record(5000), 1.0)
    out, _ = intake.batch(1.0)
    assert out[-1].facility == 0
    assert len(out) < 200


def test_a_gap_is_reported_once_with_its_size() -> None:
    intake = Intake(LogPosition("b", base=9))
    intake.take(record(10), 1.0)
    intake.take(record(40), 1.0)
    out, position = intake.batch(1.0)
    assert [seen.facts.get("lost") for seen in out if seen.kind == "agent"] == [29]
    resumed = Intake(position)
    resumed.take(record(40), 2.0)
    resumed.take(record(41), 2.0)
    assert [(seen.count, seen.facts["kernel_sequence"]) for seen in resumed.finish(2.0)[0]] == [(1, 40)]


def test_a_log_that_went_back_is_read_on_from_where_it_is() -> None:
    intake = Intake(LogPosition("b", base=900))
    intake.take(record(5), 1.0)
    intake.drained(1.0)
    intake.take(record(6), 1.0)
    out, _ = intake.batch(1.0)
    assert [seen.facts.get("cause") for seen in out] == ["reset", None]


def test_an_unreadable_record_is_visible() -> None:
    intake = Intake(LogPosition("b"))
    intake.take(b"\x00garbage", 1.0)
    intake.take(b"more garbage", 1.0)
    out = intake.batch(1.0)[0] + intake.finish(2.0)[0]
    assert [(seen.facts["event"], seen.count) for seen in out] == [("kernel_log.unparsable", 1)] * 2


texts = st.sampled_from([XID, b"NVRM: Xid (PCI:0000:4c:00): 31, pid=1", b"boring", b"mlx5_core: a", b"EDAC MC0: b"])
steps = st.lists(
    st.tuples(st.sampled_from(["read", "read", "commit", "later", "crash"]), st.integers(1, 5)), max_size=60
)


@example([b"boring", XID], [("read", 2), ("commit", 1), ("crash", 1), ("read", 1), ("commit", 1)])
@settings(max_examples=400)
@given(st.lists(texts, max_size=12), steps)
def test_wherever_the_reader_dies_every_line_counts_exactly_once(log: list[bytes], plan: list[tuple[str, int]]) -> None:
    """Mutants: the position saved with a first line covers repeats that were still being folded; a crash in the
    middle of reading again forgets which lines were sent.
    """
    position, safe, now_s, at = LogPosition("b"), [], 1.0, 0
    intake = Intake(position)
    for what, amount in plan:
        match what:
            case "read":
                for sequence in range(at, min(at + amount, len(log))):
                    intake.take(record(sequence, log[sequence]), now_s)
                at = min(at + amount, len(log))
            case "crash":
                intake, at = Intake(position), 0
            case _:
                now_s += 5.0 * amount if what == "later" else 0.01
                out, position = intake.batch(now_s)
                safe += out
    intake = Intake(position)
    for sequence, text in enumerate(log):
        intake.take(record(sequence, text), now_s)
    safe += intake.finish(now_s)[0]
    for text in {text for text in log if text != b"boring"}:
        counted = sum(seen.count for seen in safe if seen.text == text.decode())
        assert counted == log.count(text)
    assert not [seen for seen in safe if seen.kind == "agent"]
