"""Files for the boot network: cloud-init's data and dnsmasq's lines, judged by their own programs."""

import base64
import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.boot.cloud_init import compose, preview, veiled
from hostler.core.policy.documents import parse
from hostler.core.state.boot import BootAgent, BootConfiguration, CloudInitLayer, CloudInitLayers
from hostler.core.state.fleet import Fleet
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.join_offer import JoinOffer
from hostler.drivers.boot.dnsmasq_config import dnsmasq_config
from tests.kit import POLICY, a_node, configuration

LAYERS = CloudInitLayers(
    site=CloudInitLayer({"timezone": "Etc/UTC", "write_files": [{"path": "/etc/site", "content": "s"}]}),
    skus={"h100": CloudInitLayer({"timezone": "Europe/Oslo"})},
    nodes={"n1": CloudInitLayer({"hostname": "gpu-1"})},
)


def fleet_with(layers: CloudInitLayers) -> Fleet:
    fleet = Fleet()
    boots = BootConfiguration("http://10.0.0.1:8081", cloud_init=layers)
    fleet.configurations.put("active", replace(configuration(), boot=boots))
    return fleet


def test_a_later_layer_wins_and_each_value_names_its_layer() -> None:
    """Mutants: the site overrides a node; a replaced value keeps the origin of what it replaced."""
    seed = compose(fleet_with(LAYERS), a_node("n1"), own="http://h")
    assert seed.parts["user_data"]["timezone"] == "Europe/Oslo"
    assert seed.origins["user_data"]["timezone"] == "sku h100"
    assert seed.origins["user_data"]["hostname"] == "node n1"
    assert seed.origins["user_data"]["write_files.0"] == "site"
    assert "phone_home" not in compose(fleet_with(LAYERS), a_node("n1")).parts["user_data"]


def test_what_lets_a_node_into_its_cluster_comes_as_data_as_a_kubeconfig_and_as_our_cordon() -> None:
    """Mutants: everybody may read the kubeconfig; it names another server or token; it replaces a site's files."""
    expires = datetime(2026, 1, 1, tzinfo=UTC)
    door = ("mgmt", "gpu-1", "https://10.0.0.1:6443", "PEM", "sha256:0")
    join = JoinOffer(*door, "abcdef.0123456789abcdef", expires, "hostler.dev/cordon=cell-a:NoSchedule")
    seed = compose(fleet_with(LAYERS), a_node("n1"), own="http://h", join=join)
    site, offer, kubeconfig, registration = seed.parts["user_data"]["write_files"]
    assert (site["path"], offer["path"]) == ("/etc/site", "/etc/hostler/join.json")
    assert json.loads(offer["content"])["token"] == join.token
    assert (kubeconfig["path"], kubeconfig["permissions"]) == ("/etc/kubernetes/bootstrap-kubelet.conf", "0600")
    said = json.loads(kubeconfig["content"])
    cluster = {"server": join.server, "certificate-authority-data": base64.b64encode(b"PEM").decode()}
    assert said["clusters"] == [{"name": "mgmt", "cluster": cluster}]
    assert said["users"][0]["user"] == {"token": join.token}
    assert join.token not in veiled(seed).text("user-data")
    assert registration["path"] == "/etc/kubernetes/kubelet.conf.d/90-hostler.conf"
    taint = {"key": "hostler.dev/cordon", "value": "cell-a", "effect": "NoSchedule"}
    assert json.loads(registration["content"])["registerWithTaints"] == [taint]


def test_a_preview_shows_no_password_and_no_file() -> None:
    """Mutants: passwords of users are shown; the data that are given are redacted too."""
    users = {"users": [{"name": "ops", "passwd": "$6$hash"}], "chpasswd": {"users": [{"password": "pw"}]}}
    files = {"write_files": [{"path": "/etc/key", "content": "s3cret"}], "ssh_keys": {"rsa_private": "KEY"}}
    seed = compose(fleet_with(CloudInitLayers(site=CloudInitLayer({**users, **files}))), a_node("n1"))
    shown, given = veiled(seed).text("user-data"), seed.text("user-data")
    for secret in ("$6$hash", "pw", "s3cret", "KEY"):
        assert secret not in shown
        assert secret in given
    assert "name: ops" in shown
    assert veiled(seed).origins["user_data"]["write_files.0"] == "site"


def test_a_preview_shows_what_hostler_adds_and_neither_secret_nor_token() -> None:
    """Mutants: the phone-home, the agent or the cluster's files are in the boot's data and in no preview."""
    agent = BootAgent("a.deb", "0" * 64, "https://10.0.0.1:8440", ca="PEM", options="--allow-actions")
    boots = BootConfiguration("http://10.0.0.1:8081", cluster="mgmt", agent=agent, cloud_init=LAYERS)
    fleet = Fleet()
    fleet.configurations.put("active", replace(configuration(), boot=boots))
    seed = preview(fleet, a_node("n1"))
    user = seed.parts["user_data"]
    assert user["phone_home"]["url"] == "http://10.0.0.1:8081/n/n1/(not shown)/home"
    assert {file["path"]: file["content"] for file in user["write_files"]} == dict.fromkeys(
        (
            "/etc/site",
            "/etc/hostler/agent.env",
            "/etc/hostler/ca.pem",
            "/etc/hostler/enrol.json",
            "/etc/hostler/join.json",
            "/etc/kubernetes/bootstrap-kubelet.conf",
            "/etc/kubernetes/kubelet.conf.d/90-hostler.conf",
        ),
        "(not shown)",
    )
    assert "a.deb" in str(user["runcmd"])
    assert seed.origins["user_data"]["phone_home.url"] == "hostler"


def test_a_key_that_cloud_init_does_not_know_is_refused_with_its_line() -> None:
    text = "boot:\n  url: http://10.0.0.1:8081\n  cloud_init:\n    site:\n      user_data:\n        uzers: []\n"
    with pytest.raises(InvalidInputError) as refused:
        parse({"policy.yaml": POLICY, "boot.yaml": text})
    assert "boot.yaml:6: cloud-init knows no key 'uzers'" in str(refused.value)


@pytest.mark.skipif(shutil.which("cloud-init") is None, reason="cloud-init missing: run scripts/system-packages")
def test_cloud_init_itself_takes_the_user_data(tmp_path: Path) -> None:
    rendered = tmp_path / "user-data"
    rendered.write_text(compose(fleet_with(LAYERS), a_node("n1"), own="http://h").text("user-data"))
    judged = run("cloud-init", "schema", "-c", str(rendered))
    assert judged.returncode == 0, judged.stdout + judged.stderr


@pytest.mark.skipif(shutil.which("dnsmasq") is None, reason="dnsmasq missing: run scripts/system-packages")
def test_dnsmasq_itself_takes_its_lines(tmp_path: Path) -> None:
    lines = tmp_path / "dnsmasq.conf"
    lines.write_text(dnsmasq_config(BootConfiguration("http://10.0.0.1:8081")))
    judged = run("dnsmasq", "--test", "-C", str(lines))
    assert judged.returncode == 0, judged.stderr


def run(*argv: str) -> Any:
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("media", "why"),
    [
        ("{files: {x86_64: {file: b.img, sha256: SUM}}}", "no ISO image"),
        ("{files: {x86_64: {file: ../b.iso, sha256: SUM}}}", "no ISO image"),
        ("{files: {riscv: {file: b.iso, sha256: SUM}}}", "no architecture 'riscv'"),
        ("{files: {x86_64: {file: b.iso, sha256: abc}}}", "has no sha256"),
        ("{files: {}, url: ftp://bmcs}", "url 'ftp://bmcs' is no address"),
        ("{files: {}, drive: 1}", "drive"),
    ],
)
def test_a_boot_medium_that_cannot_be_served_is_named(media: str, why: str) -> None:
    text = f"boot: {{url: 'http://h:1', media: {media.replace('SUM', 'ab' * 32)}}}"
    with pytest.raises(InvalidInputError, match=why):
        parse({"policy.yaml": POLICY, "boot.yaml": text})


def test_a_boot_medium_with_a_sum_is_taken() -> None:
    text = f"boot: {{url: 'http://h:1', media: {{files: {{arm64: {{file: m/b.iso, sha256: {'ab' * 32}}}}}}}}}"
    boots = parse({"policy.yaml": POLICY, "boot.yaml": text}).boot
    assert boots is not None
    assert boots.media is not None
    assert boots.media.files["arm64"].file == "m/b.iso"
