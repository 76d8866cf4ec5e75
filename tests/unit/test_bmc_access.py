"""A BMC's password goes to the BMC or network that it was entered for, and nowhere else."""

import json
from pathlib import Path
from typing import Any

import pytest

from hostler.app.bmc_access import credentials
from hostler.core.state.input_problems import InvalidInputError
from hostler.drivers.redfish.http_exchange import Access
from hostler.ports import RefusedError

KEYS = ("https://10.20.0.0/16", "https://10.20.7.0/24", "http://127.0.0.0/8", "https://bmc7.example.org")


def written(folder: Path, *keys: str) -> Path:
    path = folder / "bmc.json"
    path.write_text(json.dumps({key: {"username": key, "password": "p", "ca": "system"} for key in keys}))
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
    """Mutants: scheme or port is not compared; a prefix of the name is enough; the widest network wins; what no key
    names is talked to without a password."""
    access = credentials(written(tmp_path, *KEYS))
    if entered:
        assert access(origin).username == entered
        return
    with pytest.raises(RefusedError, match="no key of bmc"):
        access(origin)


@pytest.mark.parametrize(
    "key", ["*", "10.20.0.0/16", "https://", "ftp://10.0.0.1", "https://10.20.0.1/16", "https://b/x"]
)
def test_a_key_that_names_no_bmc_and_no_network_is_refused(tmp_path: Path, key: str) -> None:
    """Mutant: "*" is taken; whoever rebinds one BMC then gets the fleet's password."""
    with pytest.raises(InvalidInputError, match=r"write .*https://10"):
        credentials(written(tmp_path, key))


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"username": "u", "password": "p"}, "nothing says how it is known"),
        ({"secret": "folder:bmc"}, "nothing says how it is known"),
        ({"username": "u", "password": "p", "insecure": True}, "whoever answers"),
        ({"username": "u", "password": "p", "insecure": True, "ca": "system"}, "whoever answers"),
        ({"username": "u", "secret": "folder:bmc", "ca": "system"}, "keep one"),
        ({"username": "u", "password": "p", "ca": "nowhere.pem"}, "no file"),
    ],
)
def test_a_password_is_shown_to_nobody_who_is_not_vouched_for(tmp_path: Path, entry: dict[str, Any], says: str) -> None:
    """Mutant: any of the checks is left out."""
    path = written(tmp_path) / "bmc.json"
    path.write_text(json.dumps({"https://10.20.0.0/16": entry}))
    with pytest.raises(InvalidInputError, match=says):
        credentials(tmp_path)
    path.write_text(json.dumps({"http://10.20.0.0/16": {"username": "u"}, "https://b": {"insecure": True}}))
    assert credentials(tmp_path)("http://10.20.0.1").username == "u", "the site's own word"


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b'{"https://b": 1}', b'{"https://b\xff": {}}', b'{"https://b":' + b"[" * 5_000]
)
def test_a_file_that_cannot_be_read_is_refused_with_what_to_write(tmp_path: Path, raw: bytes) -> None:
    """Mutant: text that is not UTF-8 ends in a traceback."""
    (written(tmp_path) / "bmc.json").write_bytes(raw)
    with pytest.raises(InvalidInputError, match="write "):
        credentials(tmp_path)


def test_without_a_file_plain_http_stays_on_this_machine(tmp_path: Path) -> None:
    """Mutant: every plain address is asked."""
    access = credentials(tmp_path)
    for origin in ("https://10.20.0.1", "http://127.0.0.1:9000", "http://[::1]:9000"):
        assert access(origin) == Access()
    for origin in ("http://10.20.0.1", "http://bmc7.example.org", "http://127.0.0.1.attacker.test"):
        with pytest.raises(RefusedError, match="plain HTTP"):
            access(origin)
