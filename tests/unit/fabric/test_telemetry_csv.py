"""Documents of UFM Telemetry as their manual has them, and those that are refused whole."""

from pathlib import Path

import pytest

from hostler.core.fabric.discovery import FoundPort
from hostler.core.state.links import PortReading
from hostler.drivers.infiniband import telemetry_csv

SEEDS = Path(__file__).parents[2] / "fuzz/seeds/telemetry"
LEAF = "0002c90000000100"
HEAD = "Node_GUID,Port_Number,Link_Down,Symbol_Errors,Module_Temperature,phy_state\n"


def test_slow_columns_tell_counters_state_temperature_and_the_modules_serial() -> None:
    """Mutants: a module without a sensor is at 0 C; N/A is a count of 0; a port that is polling is up."""
    read = telemetry_csv.parse((SEEDS / "low_freq.csv").read_bytes())
    assert read[FoundPort(LEAF, 2)] == PortReading(
        link_downed=7, symbol_errors=91827, state="active", temperature_c=71.5, module="MT2233VS00002"
    )
    assert read[FoundPort(LEAF, 3)] == PortReading(link_downed=3, state="down")
    assert read[FoundPort("0002c90000000500", 1)].temperature_c is None


def test_fast_columns_tell_extended_counters_and_a_switchs_own_port_is_none() -> None:
    """Mutant: the classic counter is preferred, which stays at 255."""
    read = telemetry_csv.parse((SEEDS / "converted_enterprise.csv").read_bytes())
    assert read == {FoundPort(LEAF, 1): PortReading(link_downed=300, symbol_errors=44)}


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (b"", "empty"),
        (b"<html>502 Bad Gateway</html>\n", "no column Node_GUID"),
        (b'{"error": "busy"}\n', "no column Node_GUID"),
        (b"Node_GUID,Link_Down\n", "no column Port_Number"),
        (b"Node_GUID,Port_Number,Link_Down,Link_Down\n", "twice"),
        (f"{HEAD}0x1,1,3".encode(), "cut off"),
        (f"{HEAD}0x1,1,3,0,40,5\n0x1,1,4,0,40,5\n".encode(), "told twice"),
        (f"{HEAD}mlx5_0,1,3,0,40,5\n".encode(), "no GUID"),
        (f"{HEAD}0x1,999,3,0,40,5\n".encode(), "no port"),
        (f"{HEAD}0x1,1,-3,0,40,5\n".encode(), "no count"),
        (f"{HEAD}0x1,1,{10**30},0,40,5\n".encode(), "no count"),
        (f"{HEAD}0x1,1,3,0,1e999,5\n".encode(), "no number"),
        (f"{HEAD}0x1,1,3,0,inf,5\n".encode(), "no number"),
        (HEAD.encode() + b"0x1,1,\xff\xfe,0,40,5\n", "codec can't decode"),
        (HEAD.encode() + b'0x1,1,"3,0,40,5\n', "unexpected end"),
        (",".join(["Node_GUID", "Port_Number", *map(str, range(2000))]).encode(), "columns"),
    ],
)
def test_a_document_that_does_not_fit_is_refused_whole(page: bytes, said: str) -> None:
    """Mutant: the lines that fit are read, and the others' ports look as if they had counted nothing."""
    with pytest.raises(ValueError, match=said):
        telemetry_csv.parse(page)


def test_a_document_that_is_too_large_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry_csv, "MOST_BYTES", 10)
    with pytest.raises(ValueError, match="at most 10"):
        telemetry_csv.parse(HEAD.encode())


def test_excels_mark_before_the_first_column_is_none_of_it() -> None:
    read = telemetry_csv.parse(b"\xef\xbb\xbf" + f"{HEAD}0x1,1,3,0,40,5\n".encode())
    assert read[FoundPort("0000000000000001", 1)].link_downed == 3
