"""A BMC's password goes to the BMC or network that it was entered for, and nowhere else."""

import json
from pathlib import Path

import pytest

from hostler.cli.bmc_access import credentials
from hostler.core.errors import InvalidInputError

KEYS = ("https://10.20.0.0/16", "https://10.20.7.0/24", "http://127.0.0.0/8", "https://bmc7.example.org")


def written(folder: Path, *keys: str) -> Path:
    path = folder / "bmc.json"
    path.write_text(json.dumps({key: {"username": key, "password": "p"} for key in keys}))
    path.chmod(0o600)
    return folder


@pytest.mark.parametrize(
    ("origin", "entered"),
    [
        ("https://10.20.3.4", "https://10.20.0.0/16"),
        ("https://10.20.3.4:8443", "https://10.20.0.0/16"),
        ("https://10.20.7.4", "https://10.20.7.0/24"),
        ("http://127.0.0.1:9000", "http://127.0.0.0/8"),
        ("https://bmc7.example.org:443", "https://bmc7.example.org"),
        ("https://BMC7.example.org", "https://bmc7.example.org"),
        ("http://10.20.3.4", ""),
        ("http://bmc7.example.org", ""),
        ("https://bmc7.example.org:444", ""),
        ("https://bmc7.example.org.attacker.test", ""),
        ("https://10.20.3.4.attacker.test", ""),
        ("https://10.20.3.4@attacker.test", ""),
        ("https://192.0.2.1", ""),
        ("http://attacker.test", ""),
    ],
)
def test_each_origin_gets_what_was_entered_for_it(tmp_path: Path, origin: str, entered: str) -> None:
    """Mutants: the scheme is not compared; the port is not; a prefix of the name is enough; the widest network wins."""
    assert credentials(written(tmp_path, *KEYS[:4]))(origin).username == entered


@pytest.mark.parametrize(
    "key", ["*", "10.20.0.0/16", "https://", "ftp://10.0.0.1", "https://10.20.0.1/16", "https://b/x"]
)
def test_a_key_that_names_no_bmc_and_no_network_is_refused(tmp_path: Path, key: str) -> None:
    """Mutant: "*" is taken; whoever rebinds one BMC then gets the fleet's password."""
    with pytest.raises(InvalidInputError, match=r"write .*https://10"):
        credentials(written(tmp_path, key))
