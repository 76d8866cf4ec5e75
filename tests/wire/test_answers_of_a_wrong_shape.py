"""Answers of a wrong shape, each of a reader of its own: the error says whose it is, what is wrong and what to do."""

from collections.abc import Callable

import pytest

from hostler.drivers.kubernetes.credentials import read_credential
from hostler.drivers.kubernetes.gpu_operator import read_seen
from hostler.drivers.redfish.tolerant_json import document
from hostler.drivers.secrets.vault_wire import read_login, read_secret
from hostler.drivers.slurm import wire as slurm
from hostler.drivers.unreadable_answers import MOST, unreadable
from hostler.ports import UnreachableError
from tests.unit.test_messages import ADVICE

READERS: dict[str, tuple[Callable[[bytes], object], str]] = {
    "a BMC": (lambda raw: document(raw, "answer to GET /redfish/v1"), "the BMC's answer to GET /redfish/v1"),
    "Kubernetes": (read_seen, "the API server's Node"),
    "a login program": (lambda raw: read_credential(raw, "aws"), "the ExecCredential of `aws`"),
    "Slurm's nodes": (slurm.nodes, "Slurm's list of nodes"),
    "Slurm's jobs": (slurm.jobs, "Slurm's list of jobs"),
    "Vault's secret": (lambda raw: read_secret(200, raw, "bmc/n1"), "Vault's answer for secret bmc/n1"),
    "Vault's login": (lambda raw: read_login(200, raw), "Vault's answer to the login"),
}
WRONG = (b"[1, 2]", b"7", b"<html>Sign in</html>", b"", b'{"metadata": [', b"\xff\xfe", b"[" * 100_000)


@pytest.mark.parametrize("raw", WRONG, ids=lambda raw: repr(raw[:12]))
@pytest.mark.parametrize("reader", READERS)
def test_an_answer_of_a_wrong_shape_is_told_with_whose_it_is_and_what_to_do(reader: str, raw: bytes) -> None:
    """Mutants: the parser's words alone are told; an answer nested too deeply ends the reader."""
    read, whose = READERS[reader]
    with pytest.raises(UnreachableError) as told:
        read(raw)
    text = str(told.value)
    assert text.startswith(whose)
    assert ADVICE.search(text)
    assert len(text) < 2 * MOST
    assert text.isprintable()


def test_a_reader_that_quotes_what_it_was_sent_is_cut() -> None:
    assert (
        len(str(unreadable("the answer", "x" * 10_000, "look at it")))
        == len("the answer cannot be read: ; look at it") + MOST
    )
