"""A kubelet joins the clusters that root named on its own machine, whatever the controller offers it."""

import json
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hostler.agent import kubelet
from hostler.agent.cluster_pins import PinsError, read_pins
from hostler.agent.kubelet import KubeletJoinOffer
from hostler.agent.machine import Powers, RealHostMachine
from hostler.agent.main import main
from hostler.agent.node_operations import NodeOperations
from hostler.agent.operation_log import OperationLog
from hostler.core.state.model import Operation, Outcome
from hostler.core.state.operations import StartKubelet
from hostler.sim.bmc.tls_certificates import Certificate, self_signed

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SERVER = "https://api.train.example:6443"
OURS, THEIRS, LATER = (self_signed(NOW, name) for name in ("train", "attacker", "serve"))


class Node:
    """A real body beside a `systemctl` that writes down what it was asked."""

    def __init__(self, home: Path, servers: str = f"{SERVER},https://serve.example", *, pinned: bool = True) -> None:
        self.asked, self.folder = home / "asked", home / "kubernetes"
        ca = home / "ca.crt"
        ca.write_bytes(OURS.certificate + LATER.certificate)
        clusters = read_pins(servers, str(ca)) if pinned else read_pins("", "")
        self.body = RealHostMachine("n1", home, Powers(actions=True, clusters=clusters))
        self.operation_log = OperationLog(home / "marks.sqlite")
        self._number = 0

    def join(self, offer: KubeletJoinOffer) -> Outcome:
        self._number += 1
        order = Operation(f"op{self._number}", StartKubelet(), "n1", "plan1", 0, NOW, NOW)
        return NodeOperations("n1", self.body, self.operation_log).perform(order, 1, offer=offer)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tool = tmp_path / "bin" / "systemctl"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=":")
    monkeypatch.setattr(kubelet, "FOLDER", tmp_path / "kubernetes")
    return tmp_path


@pytest.fixture
def node(home: Path) -> Iterator[Node]:
    made = Node(home)
    yield made
    made.body.close()
    made.operation_log.close()


def offer(server: str = SERVER, *authorities: Certificate, ca: str = "") -> KubeletJoinOffer:
    return KubeletJoinOffer(
        "train", "n1", server, ca or b"".join(a.certificate for a in authorities).decode(), "s3cret-token"
    )


def test_a_kubelet_joins_the_cluster_that_was_named(node: Node) -> None:
    """Mutant: what the order says is written, and not what was named here."""
    noise = f"# theirs\n{THEIRS.certificate.decode().replace('CERTIFICATE', 'TRUSTED CERTIFICATE')}"
    given = offer("HTTPS://API.train.example:6443/", ca=noise + OURS.certificate.decode())
    outcome = node.join(given)
    assert (outcome.result, node.asked.read_text()) == ("done", "restart kubelet\n"), outcome.detail
    written = json.loads((node.folder / "bootstrap-kubelet.conf").read_text())
    cluster = written["clusters"][0]["cluster"]
    assert cluster["server"] == SERVER
    assert b64decode(cluster["certificate-authority-data"]).split() == OURS.certificate.split()
    assert node.join(offer("https://serve.example:443", LATER)).result == "done"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (offer("https://evil.example:6443", OURS), ("https://evil.example:6443", SERVER)),
        (offer(f"{SERVER}4", OURS), (f"{SERVER}4", SERVER)),
        (offer("https://api.train.example", OURS), ("api.train.example:443", SERVER)),
        (offer(f"{SERVER}/evil", OURS), (f"{SERVER}/evil", SERVER)),
        (offer("http://api.train.example:6443", OURS), ("not https://", SERVER)),
        (offer("https://api.train.example:6443@evil.example", OURS), ("not https://", SERVER)),
        (offer("https://[evil", OURS), ("not an address", SERVER)),
        (offer(SERVER, THEIRS), (THEIRS.fingerprint, OURS.fingerprint)),
        (offer(SERVER, OURS, THEIRS), (THEIRS.fingerprint, OURS.fingerprint)),
        (offer(SERVER), ("no authority", OURS.fingerprint)),
        (offer(SERVER, ca="-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n"), ("no authority",)),
    ],
)
def test_an_order_that_leads_elsewhere_is_refused_with_both_named(
    node: Node, given: KubeletJoinOffer, says: tuple[str, ...]
) -> None:
    """Mutants: only the server, or only the authority, is compared; one known authority of several is enough."""
    node.folder.mkdir()
    (node.folder / "kubelet.conf").write_text("of the cluster that it serves")
    outcome = node.join(given)
    assert outcome.result == "refused"
    for named in says:
        assert named in outcome.detail
    assert "s3cret" not in outcome.detail
    assert not node.asked.exists()
    assert [file.name for file in node.folder.iterdir()] == ["kubelet.conf"]


def test_an_agent_that_was_told_no_cluster_joins_none(home: Path) -> None:
    """Mutant: no pins allow everything."""
    node = Node(home, pinned=False)
    outcome = node.join(offer(SERVER, OURS))
    assert (outcome.result, "--cluster-server" in outcome.detail) == ("refused", True)
    assert not node.folder.exists()
    node.body.close()
    node.operation_log.close()


@pytest.mark.parametrize(
    ("servers", "ca", "says"),
    [
        (SERVER, None, "belong together"),
        ("", OURS.certificate, "belong together"),
        (SERVER, b"", "no certificate in it"),
        (SERVER, OURS.key, "no certificate in it"),
        ("http://api.train.example:6443", OURS.certificate, "not https://"),
        (f"{SERVER},https://a:b@c", OURS.certificate, "not https://"),
    ],
    ids=["no file", "no server", "empty", "a key", "http", "a password"],  # certificates are made anew in each process
)
def test_pins_that_cannot_be_used_keep_the_agent_from_starting(
    tmp_path: Path, servers: str, ca: bytes | None, says: str
) -> None:
    file = tmp_path / "ca.crt"
    if ca is not None:
        file.write_bytes(ca)
    arguments = ["--node=n1", f"--state-dir={tmp_path}/state", f"--token-file={tmp_path}/token", "--allow-actions"]
    with pytest.raises(SystemExit, match=says):
        main([*arguments, f"--cluster-server={servers}", f"--cluster-ca={'' if ca is None else file}"])
    assert not (tmp_path / "state").exists()
    with pytest.raises(PinsError, match="No such file"):
        read_pins(SERVER, str(tmp_path / "nowhere"))
