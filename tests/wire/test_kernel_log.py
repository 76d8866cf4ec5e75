"""Kernel-log lines as drivers and loggers print them, and as nobody should."""

import timeit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hostler.core.diagnose.decoded import Decoded
from hostler.core.diagnose.kernel_log import TEXT_LIMIT_CHARS, decode
from hostler.core.tables.conditions import CONDITIONS

LINE = "NVRM: Xid (PCI:0000:4c:00): 79, pid=4711, name=trainer, GPU has fallen off the bus."


def one(text: str) -> Decoded:
    (found,) = decode(text)
    return found


@pytest.mark.parametrize(
    "before",
    [
        "",
        "[  812.114207] ",
        "[Tue Mar  4 09:12:44 2025] ",
        "[Tue Mar  4 09:12:44 2025] rack7-gpu2 kernel: ",
        "kernel: [  812.114207] ",
        "Mar  4 09:12:44 rack7-gpu2 kernel: ",
        "2025-03-04T09:12:44.114207+01:00 rack7-gpu2 kernel: [  812.114207] ",
        "kern  :err   : 2025-03-04T09:12:44,114207+01:00 ",
        "<3>[  812.114207] ",
        "3,1288,812114207,-;",
        "3,1288,812114207,-,caller=T921;",
        "[  812.114207] [T921] ",
    ],
)
def test_whatever_loggers_put_before_a_line_it_reads_the_same(before: str) -> None:
    found = one(before + LINE)
    assert (found.kind, found.code, found.pci) == ("xid", 79, "0000:4c:00")
    assert (found.action, found.condition) == ("RESTART_BM", "gpu.fallen_off_bus")
    assert found.facts["pid"] == 4711
    assert found.facts["process"] == "trainer"


@pytest.mark.parametrize(
    ("address", "pci"),
    [
        ("PCI:0000:4c:00", "0000:4c:00"),
        ("0000:4c:00", "0000:4c:00"),
        ("PCI:0000:4C:00.0", "0000:4c:00"),
        ("PCI:00000000:4C:00.0", "0000:4c:00"),
        ("PCI:0018:01:00", "0018:01:00"),
        ("PCI:4c:00", "0000:4c:00"),
        ("PCI:0000:4c:00 GPU-I:05", "0000:4c:00"),
        ("PCI:0000:4c:00 GPU-I:05 GPU-CI:01", "0000:4c:00"),
    ],
)
def test_every_form_of_address_names_the_same_gpu(address: str, pci: str) -> None:
    assert one(f"NVRM: Xid ({address}): 46, pid=9").pci == pci


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("NVRM: Xid (PCI:0000:4c:00): 46", 46),
        ("NVRM: Xid (PCI:0000:4c:00): 46\r\n", 46),
        ("NVRM: Xid (PCI:0000:4c:00): 46, pid='<unknown>', name=<unknown>, Ch 00000003", 46),
        ("NVRM: Xid (PCI:0000:4c:00): 46, pid='<unknown>', name='<unknown>', Ch 00000003", 46),
        ("NVRM: Xid (0000:4c:00): 31, Ch 00000010, engmask 00000101", 31),
        ("NVRM: Xid (PCI:0000:4c:00): 94, \udcff\x00\x1b[2J", 94),
    ],
)
def test_code_is_read_wherever_the_line_ends(line: str, code: int) -> None:
    found = one(line)
    assert found.code == code
    assert "pid" not in found.facts
    assert "process" not in found.facts
    found.line.encode()
    assert "\x1b" not in found.line


@pytest.mark.parametrize(
    "line",
    [
        "",
        "NVRM: Xid",
        "NVRM: Xid (PCI:0000:4c:00): abc, pid=1",
        "NVRM: Xid (PCI:0000:4c:00): 79abc",
        "NVRM: Xid (PCI:0000:4c:00): -79",
        "NVRM: Xid (PCI:0000:4c:00): 0x4f",
        "NVRM: Xid (PCI:0000:4c:00): ٧٩, other digits",
        "NVRM: Xid (PCI:zzzz:4c:00): 79",
        "NVRM: Xid (PCI:0000:4c:00): 1234567890, too long for a code",
        "NVRM: GPU at PCI:0000:4c:00: GPU-0b0e3c4e-0000-0000-0000-000000000000",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15",
        "usb 1-4: Product: NVRM: Xid (PCI:0000:4c:00): 79, GPU has fallen off the bus.",
        "logger[312]: NVRM: Xid (PCI:0000:4c:00): 79, GPU has fallen off the bus.",
        'audit: type=1300 cmd="NVRM: Xid (PCI:0000:4c:00): 79"',
    ],
)
def test_malformed_ordinary_and_quoted_lines_report_nothing(line: str) -> None:
    """Mutant: search the whole line instead of asking `opens_line`; a USB stick's name then costs a node."""
    assert decode(line) == ()


def test_unknown_code_is_reported_for_investigation() -> None:
    found = one("NVRM: Xid (PCI:0000:4c:00): 999, something new")
    assert (found.known, found.action, found.condition) == (False, "INVESTIGATE", "gpu.xid_unknown")


@pytest.mark.parametrize(
    ("words", "action", "condition"),
    [
        ("from 0x1 (GPU Reset Required) to 0x0 (None)", "NONE", "gpu.informational"),
        ("from 0x0 (None) to 0x1 (GPU Reset Required)", "RESET_GPU", "gpu.reset_required"),
        ("from 0x0 (None) to 0x2 (Node Reboot Required)", "RESTART_BM", "gpu.reboot_required"),
        ("from 0x0 (None) to 0x4 (Drain and Reset)", "DRAIN_AND_RESET", "gpu.drain_and_reset"),
        ("from 0x0 (None) to 0x2 (OS Reboot)", "RESTART_BM", "gpu.reboot_required"),
        ("from 0x0 (None) to 0x1 (PF FLR)", "RESET_GPU", "gpu.reset_required"),
        ("from 0x0 (None) to 0x3 (Drain P2P)", "DRAIN_P2P", "gpu.xid_investigate"),
        ("from 0x0 (None) to 0x9 (Dance)", "INVESTIGATE", "gpu.xid_investigate"),
        ("from 0x0 (None) to 0x1 (GPU Reset Requ", "INVESTIGATE", "gpu.xid_investigate"),
        ("and the rest is lost", "INVESTIGATE", "gpu.xid_investigate"),
    ],
)
def test_recovery_action_is_what_stands_after_to(words: str, action: str, condition: str) -> None:
    """Mutant: read the words after "from"; a GPU that asks for a reset then looks recovered."""
    found = one(f"NVRM: Xid (PCI:0000:4c:00): 154, GPU recovery action changed {words}")
    assert (found.action, found.condition) == (action, condition)


FALLEN = (
    "[  3.1] NVRM: The NVIDIA GPU 0000:4c:00.0\n"
    "               NVRM: (PCI ID: 10de:2330) installed in this system has\n"
    "               NVRM: fallen off the bus and is not responding to commands."
)


def test_a_gpu_off_the_bus_is_told_without_its_xid_too() -> None:
    found = one(FALLEN)
    assert (found.kind, found.code, found.pci) == ("gpu_fallen_off_bus", 79, "0000:4c:00")
    assert found.facts["xid_implied"] is True
    assert one("NVRM: fallen off the bus and is not responding to commands.").pci == ""


def test_a_gpu_off_the_bus_is_counted_with_its_xid_and_only_with_its_own() -> None:
    assert one(f"{FALLEN}\n{LINE}").kind == "xid"
    other = "NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus."
    assert sorted(found.pci for found in decode(f"{FALLEN}\n{other}")) == ["0000:4c:00", "0000:9b:00"]


def test_lines_of_one_text_are_read_in_order() -> None:
    lines = [f"[ {n}.0] NVRM: Xid (PCI:0000:4c:00): {code}" for n, code in enumerate((13, 13, 45, 48))]
    text = "\n".join([*lines[:2], "NVRM: something else", *lines[2:]])
    assert [found.code for found in decode(text)] == [13, 13, 45, 48]


def test_a_program_fault_names_the_core() -> None:
    found = one("NVRM: Xid (PCI:0000:4c:00): 13, Graphics SM Warp Exception on (GPC 3, TPC 1, SM 0): Oops")
    assert (found.facts["gpc"], found.facts["tpc"], found.facts["sm"]) == (3, 1, 0)
    page = "MMU Fault: ENGINE GRAPHICS GPC4 GPCCLIENT_T1_2 faulted @ 0x7f2a_00000000. Fault is of type FAULT_PDE"
    assert one(f"NVRM: Xid (PCI:0000:4c:00): 31, pid=7, name=python, Ch 00000010, intr 0. {page}").facts["gpc"] == 4
    assert found.condition == "gpu.application_error"


def test_an_older_nvlink_names_link_and_registers() -> None:
    found = one(
        "NVRM: Xid (PCI:0000:4c:00): 74, NVLink: fatal error detected on link 5(0x0, 0x4, 0x0, 0x0, 0x0, 0x0, 0x0)"
    )
    assert found.facts["link"] == 5
    assert found.facts["registers"] == ("0x0", "0x4", "0x0", "0x0", "0x0", "0x0", "0x0")
    cut = one("NVRM: Xid (PCI:0000:4c:00): 74, NVLink: fatal error detected on link 5(0x0, 0x4, 0x1")
    assert (cut.facts["link"], "registers" in cut.facts) == (5, False)


@pytest.mark.parametrize(
    ("words", "action", "layouts", "condition"),
    [
        # one unit in either driver's layout
        ("144, SAW_MVB Fatal XC0 i0 Link 02 (0x00000021 0x00000002 0x0)", "RESET_GPU", ("V1",), "gpu.nvlink_error"),
        ("144, SAW_MVB Fatal XC0 i0 Link 02 (0x00000001 0x00000002 0x0)", "RESET_GPU", ("V2",), "gpu.nvlink_error"),
        ("144, SAW_MVB Nonfatal XC0 i0 Link 02 (0x00000001 0x00000004 0x0)", "IGNORE", ("V2",), "gpu.informational"),
        # the escalation bit of the receive pipe
        (
            "145, RLW_RXPIPE Nonfatal XC0 i0 Link 02 (0x000000c2 0x00000001)",
            "INVESTIGATE",
            ("V1",),
            "gpu.xid_investigate",
        ),
        ("145, RLW_RXPIPE Nonfatal XC0 i0 Link 02 (0x000004c2 0x00000001)", "RESET_GPU", ("V1",), "gpu.nvlink_error"),
        # a link goes down for its reason, whatever the status
        ("149, NETIR_LINK_EVT Fatal XC0 i0 Link 07 (0x026001c6 0x12345678)", "IGNORE", ("V1",), "gpu.xid_investigate"),
        (
            "150, MSE_WATCHDOG Fatal XC0 i0 Link -1 (0x00000000 0x00000000)",
            "RESET_GPU",
            ("V1", "V2"),
            "gpu.nvlink_error",
        ),
    ],
)
def test_nvlink5_words_decide(words: str, action: str, layouts: tuple[str, ...], condition: str) -> None:
    found = one(f"NVRM: Xid (PCI:0000:4c:00): {words}")
    assert (found.action, found.facts["decode"], found.condition) == (action, layouts, condition)


@pytest.mark.parametrize("severity", ["Fatal", "Nonfatal"])
@pytest.mark.parametrize(
    "rest",
    [
        "TLW_NEW {} XC0 i0 Link 01 (0x00000001 0x00000001)",
        "TLW_CTRL {} XC0 i0 Link 01 (0x",
        "TLW_CTRL {} XC0 i0 Link 01 (0x00000009 0x00000005)",  # two causes at once
        "TLW_CTRL {} XC0 i0 Link 01 (0x00000009 0xdeadbeef)",
    ],
)
def test_nvlink5_words_of_no_row_are_investigated(severity: str, rest: str) -> None:
    """Mutants: believe the line's own "Fatal", or single bits of a status, where no row does: resets on a guess."""
    found = one(f"NVRM: Xid (PCI:0000:4c:00): 146, {rest.format(severity)}")
    assert (found.action, found.condition) == ("INVESTIGATE", "gpu.xid_investigate")
    assert found.facts["decode"] == ("truncated" if rest.endswith("0x") else "no_rule")
    assert found.ambiguous


@pytest.mark.parametrize(
    ("rest", "decoded"),
    [
        ("", "truncated"),
        (",", "truncated"),
        (", TLW_", "truncated"),
        (", TLW_CTRL", "truncated"),
        (", TLW_CTRL Nonfa", "truncated"),
        (", TLW_CTRL Fatal XC0 i", "truncated"),
        (", TLW_CTRL Fatal XC0 i0 Li", "truncated"),
        (", TLW_CTRL Fatal XC0 i0 Link 01", "truncated"),
        (", TLW_CTRL Fatal XC0 i0 Link 01 (0x00000009", "truncated"),
        (", TLW_CTRL Fatal XC0 i0 Link 01 (0x00000009 0x00000004", "truncated"),
        (", TLW_CTRL Fatal XC0 i0 Link 01 (0x00000009 0x00000005)", "no_rule"),
        (", a form of its own (0x00000009 0x00000004)", "no_rule"),
        (", TLW_CTRL Fatal XC0 i0 Link 01 (0x00000009 0x00000004 0x0", ("V2",)),
    ],
)
def test_nvlink5_says_why_no_row_was_found(rest: str, decoded: object) -> None:
    """Mutant: one word for both; a line that lost its end then looks like an error the vendor does not know."""
    assert one(f"NVRM: Xid (PCI:0000:4c:00): 146{rest}").facts["decode"] == decoded


@pytest.mark.parametrize("unit", ["TLW_RX_PIPE0", "TLW_RX_PIPE1", "TLW_TX_PIPE0", "TLW_TX_PIPE1"])
@pytest.mark.parametrize("layout", ["V1", "V2"])
def test_fatal_errors_of_the_transaction_pipes_ask_for_a_reset(unit: str, layout: str) -> None:
    """The vendor's rows for status 4 say Fatal and RESET_GPU without a note; other tools rank these as warnings.

    Mutant: take 0x4 of the pipes for noise.
    """
    number = {"TLW_RX_PIPE0": 0x0A, "TLW_RX_PIPE1": 0x0B, "TLW_TX_PIPE0": 0x0C, "TLW_TX_PIPE1": 0x0D}[unit]
    old = 0x143 if "_RX_" in unit else 0x163
    info = old if layout == "V1" else number
    name = f"{unit[:6]}/{unit}" if layout == "V2" else unit[:6]
    found = one(f"NVRM: Xid (PCI:0000:4c:00): 146, {name} Fatal XC0 i0 Link 00 (0x{info:08x} 0x00000004 0x0)")
    assert (found.action, found.condition, found.facts["decode"]) == ("RESET_GPU", "gpu.nvlink_error", (layout,))
    assert (found.facts["nvlink_severity"], found.facts["investigatory"]) == ("Fatal", "CONTACT_SUPPORT")


@pytest.mark.parametrize(
    "words",
    [
        "NETIR_LINK_EVT Fatal XC0 i0 Link 07",
        "NETIR_LINK_EVT Fatal XC0 i0 Link 07 (0x02",
        "NETIR_LINK_EVT Fatal XC0 i0 Link 07 (0x020001c6 0x000",
    ],
)
def test_nvlink5_words_that_were_cut_off_decide_nothing(words: str) -> None:
    """Mutant: read the last word of a line that ends within it; half a status is another status."""
    found = one(f"NVRM: Xid (PCI:0000:4c:00): 149, {words}")
    assert (found.action, found.facts["subcode"], found.facts["link"]) == ("INVESTIGATE", "NETIR_LINK_EVT", 7)
    assert found.ambiguous
    assert "error_status" not in found.facts


SWITCH = "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, "


def test_further_lines_of_a_switch_error_belong_to_its_first() -> None:
    """Mutant: take them for errors of their own; one fault of one switch is then three."""
    further = [SWITCH + "Severity 0 Engine instance 30 Sub-engine instance 00", SWITCH + "Data {0x1, 0x0}"]
    found = one("\n".join([SWITCH + "Fatal, Link 30 LTSSM Fault Up", *further]))
    assert (found.facts["link"], found.condition) == (30, "nvswitch.link_fatal")
    assert [finding.facts["continuation"] for finding in decode("\n".join(further))] == [True]
    other = further[0].replace("c1:00", "c2:00")
    assert len(decode(f"{SWITCH}Fatal, Link 30 LTSSM Fault Up\n{other}")) == 2


@pytest.mark.parametrize(
    ("said", "action", "condition"),
    [("Fatal", "RESET_GPU", "gpu.nvlink_error"), ("Nonfatal", "INVESTIGATE", "gpu.xid_investigate")],
)
def test_the_line_settles_a_severity_that_the_table_calls_generally_fatal(
    said: str, action: str, condition: str
) -> None:
    """The vendor's note to `Fatal**`: generally fatal, the severity is in the line, and it may be another one.

    Mutants: look at every row with a star; reset whatever the line says.
    """
    found = one(f"NVRM: Xid (PCI:0000:4c:00): 149, NETIR_MFDE_EVENT {said} XC0 i0 Link 01 (0x00000014 0x00000001)")
    assert (found.action, found.condition) == (action, condition)
    assert (found.facts["nvlink_severity"], found.facts["decode"]) == ("Fatal**", ("V2",))
    assert bool(found.ambiguous) is (said == "Nonfatal")


PIECES = st.sampled_from(
    (
        "NVRM: ",
        "Xid ",
        "(PCI:",
        "0000:4c:00",
        "): ",
        "79",
        "145, RLW_RXPIPE Fatal XC0 i0 Link 1 (0x",
        "154, GPU recovery action changed from 0x0 (",
        ", pid=",
        ", name=",
        "GPU 0000:4c:00 ",
        "The NVIDIA ",
        "fallen off the bus",
        "\n",
        "\r",
        "[",
        "] ",
        "kernel:",
        "\udcff",
        "\0",
    )
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=40).map("".join))
@example("NVRM: Xid (PCI:0000:4c:00): 79" * 3)
def test_arbitrary_text_never_raises_and_convicts_only_by_the_table(text: str) -> None:
    for found in decode(text):
        assert found.condition in CONDITIONS
        assert found.action
        found.text.encode()
        found.line.encode()


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: Xid (" * 6_000,
        "[" * 60_000 + LINE,
        "kernel: " * 8_000 + LINE,
        "NVRM: GPU 0000:4c:00 " * 3_000 + "fallen off the bus",
        (" " * 250 + LINE + "\n") * 180,
    ],
)
def test_hostile_text_is_read_in_linear_time(text: str) -> None:
    assert min(timeit.repeat(lambda: decode(text), number=1, repeat=3)) < 0.2


def test_text_is_read_up_to_its_limit() -> None:
    assert decode("x" * TEXT_LIMIT_CHARS + "\n" + LINE) == ()
