"""A real Kubernetes on loopback: etcd, API server, controllers, scheduler, and kwok in the place of kubelets.

Everything takes free ports and a folder of its own, ends with its test process, also when that is killed, and is killed
outright: a polite API server keeps its port for a minute.
"""

import contextlib
import copy
import datetime as dt
import ipaddress
import json
import shutil
import ssl
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.controlplane.building import NoControlPlaneError, programs
from tests.end_to_end.processes import free_port
from tests.tied_processes import skip_where_nothing_can_be_tied, tied

START_S = 240.0
USERS = {"admin": "system:masters", "alice": "customers"}
"""Users with a token, and the group of each; of these only admin may do anything by itself."""

WORKS = "test.hostler.dev/works"
"""A pod's annotation, for kwok."""

CHECKS = {
    "check.test/passes": (0, '{"verdict": "passed", "detail": "8 GPUs"}'),
    "check.test/fails": (2, '{"verdict": "failed", "detail": "it computes otherwise", "part": "gpu3"}'),
    "check.test/reads": (
        0,
        '{"verdict": "passed", "detail": "1 GPU", "readings": {"gemm_perf|bf16_tflops": {"cuda:0": 741.5}}}',
    ),
    "check.test/lies": (2, '{"verdict": "passed"}'),
    "check.test/crashes": (137, ""),
    "check.test/silent": (0, ""),
    "check.test/garbage": (0, "%$ 0 --- ##"),
    "check.test/negative": (0, '{"verdict": "passed", "readings": {"gemm_perf|bf16_tflops": {"cuda:0": -741.5}}}'),
}
"""Images of idle checks, how their container ends and what it says last; any other runs until somebody ends it."""

CONTROLLERS = (
    "--service-account-private-key-file=accounts.key",
    "--root-ca-file=ca.crt",
    "--cluster-signing-cert-file=ca.crt",
    "--cluster-signing-key-file=ca.key",
    "--controllers=*,tokencleaner",
)
"""As kubeadm starts them: certificates of kubelets are signed, tokens that have expired are deleted."""

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class ControlPlane:
    """A running Kubernetes; `url` is its API. `extra` are further flags of the API server.

    With `--etcd-compaction-interval=…` and `--watch-cache-sizes=nodes#0,pods#0` it answers old resourceVersions with
    410, which its watch cache hides otherwise. `lease_s` is how long a node's lease lasts: kwok renews each in a
    quarter of that, and where the nodes are thousands, these writes are most of what the API server does.
    """

    def __init__(self, *extra: str, lease_s: int = 40) -> None:
        self._programs = programs()
        self._extra = extra
        self._lease_s = lease_s
        self.folder = Path(tempfile.mkdtemp(prefix="hostler-kube-", dir="/tmp"))
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        names = ("etcd", "peer", "api", "controllers", "scheduler", "kwok")
        self._ports = {name: free_port() for name in names}
        self.url = f"https://127.0.0.1:{self._ports['api']}"
        self.ca = self.folder / "ca.crt"
        try:
            self._certify()
            for user in USERS:
                self.kubeconfig(user, f"{user}-token")
            self._start()
        except BaseException:
            self.close()
            raise

    def kubeconfig(self, user: str, token: str = "", url: str = "") -> Path:
        """The user's kubeconfig, written anew where a token is given; the token lies in a file beside it."""
        path = self.folder / f"{user}.kubeconfig"
        if not token:
            return path
        secret = self.folder / f"{user}.token"
        secret.write_text(token)
        secret.chmod(0o600)
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": url or self.url, "certificate-authority": str(self.ca)}}],
            "users": [{"name": user, "user": {"tokenFile": str(secret)}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": user}}],
            "current-context": "x",
        }
        path.write_text(json.dumps(document))
        path.chmod(0o600)
        return path

    def stop_api(self) -> None:
        """The API server is gone; what it knew stays in etcd."""
        self._kill("api")

    def start_api(self) -> None:
        """Start the API server, on its port, and return once it is ready."""
        self._run(
            "api",
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._ports['etcd']}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._ports['api']}",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--tls-cert-file=server.crt",
            "--tls-private-key-file=server.key",
            "--client-ca-file=ca.crt",
            "--token-auth-file=tokens.csv",
            "--authorization-mode=Node,RBAC",
            "--enable-bootstrap-token-auth",
            "--enable-admission-plugins=NodeRestriction",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            "--service-account-key-file=accounts.pub",
            "--service-account-signing-key-file=accounts.key",
            "--disable-admission-plugins=ServiceAccount",
            "--allow-privileged=true",
            *self._extra,
        )
        self._wait(f"{self.url}/readyz")

    def close(self) -> None:
        for name in list(self._running):
            self._kill(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- helpers ---

    def _start(self) -> None:
        ports = self._ports
        etcd, peer = f"http://127.0.0.1:{ports['etcd']}", f"http://127.0.0.1:{ports['peer']}"
        self._run(
            "etcd",
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={etcd}",
            f"--advertise-client-urls={etcd}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )
        self._wait(f"{etcd}/health")
        self.start_api()
        grace = f"--node-monitor-grace-period={3 * self._lease_s}s"
        open_paths = "--authorization-always-allow-paths=/healthz"
        for name, program, *flags in (
            ("controllers", "kube-controller-manager", *CONTROLLERS, grace),
            ("scheduler", "kube-scheduler"),
        ):
            self._run(
                name,
                program,
                *flags,
                "--kubeconfig=admin.kubeconfig",
                "--authentication-kubeconfig=admin.kubeconfig",
                "--authorization-kubeconfig=admin.kubeconfig",
                "--bind-address=127.0.0.1",
                f"--secure-port={ports[name]}",
                "--leader-elect=false",
                "--kube-api-qps=1000",
                "--kube-api-burst=2000",
                open_paths,
            )
        self._run(
            "kwok",
            "kwok",
            "--kubeconfig=admin.kubeconfig",
            f"--config={self._stages()}",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            f"--node-lease-duration-seconds={self._lease_s}",
            f"--server-address=127.0.0.1:{ports['kwok']}",
            "--node-ip=127.0.0.1",
            f"--node-port={ports['kwok']}",
        )
        for name in ("controllers", "scheduler"):
            self._wait(f"https://127.0.0.1:{ports[name]}/healthz")

    def _stages(self) -> Path:
        """Stages of kwok's kubelets; a Job's pod that bears `WORKS` runs until somebody ends it, not for a moment."""
        found = list(yaml.safe_load_all(self._programs["stages"].read_text()))
        ending = next(one for one in found if one["metadata"]["name"] == "pod-complete")
        key = f'.metadata.annotations["{WORKS}"]'
        ending["spec"]["selector"]["matchExpressions"].append({"key": key, "operator": "DoesNotExist"})
        image = {"key": ".spec.containers.[].image", "operator": "NotIn", "values": [*CHECKS, "check.test/works"]}
        ending["spec"]["selector"]["matchExpressions"].append(image)
        found += [_check_stage(ending, image, *said) for image, said in CHECKS.items()]
        going = next(one for one in found if one["metadata"]["name"] == "pod-delete")
        found.append(_ended_stage(ending, going))
        path = self.folder / "stages.yaml"
        path.write_text(yaml.safe_dump_all(found))
        return path

    def _run(self, name: str, program: str, *flags: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                tied(str(self._programs[program]), *flags),
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )

    def _kill(self, name: str) -> None:
        if (process := self._running.pop(name, None)) is not None:
            process.kill()
            process.wait()

    def _wait(self, url: str) -> None:
        """Until it answers well. Raises where it does not in time, with the last lines of every log."""
        trusting = ssl.create_default_context()
        trusting.check_hostname = False
        trusting.verify_mode = ssl.CERT_NONE
        request = urllib.request.Request(url, headers={"Authorization": "Bearer admin-token"})  # noqa: S310 - its own
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            later = contextlib.suppress(OSError)
            with later, urllib.request.urlopen(request, timeout=5, context=trusting) as answer:  # noqa: S310 - its own
                if answer.status == 200:
                    return
            time.sleep(0.05)
        logs = "\n".join(f"{log.name}: {log.read_text()[-1_000:]}" for log in sorted(self.folder.glob("*.log")))
        raise AssertionError(f"{url} does not answer:\n{logs}")

    def _certify(self) -> None:
        """An authority, the API server's certificate, and the key that signs the tokens of service accounts."""
        authority, server = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        accounts = rsa.generate_private_key(65537, 2048)
        issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test-ca")])
        root = _certificate(issuer, issuer, authority, authority).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kube-apiserver")])
        # 10.0.2.2 is this machine as a machine in QEMU reaches it.
        names = [
            x509.DNSName("localhost"),
            *(x509.IPAddress(ipaddress.ip_address(i)) for i in ("127.0.0.1", "10.0.0.1", "10.0.2.2")),
        ]
        leaf = _certificate(subject, issuer, server, authority).add_extension(
            x509.SubjectAlternativeName(names), critical=False
        )
        for name, builder in (("ca", root), ("server", leaf)):
            made = builder.sign(authority, hashes.SHA256())
            (self.folder / f"{name}.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
        for name, key in (("ca", authority), ("server", server), ("accounts", accounts)):
            (self.folder / f"{name}.key").write_bytes(_private(key))
        public = serialization.PublicFormat.SubjectPublicKeyInfo
        pem = accounts.public_key().public_bytes(serialization.Encoding.PEM, public)
        (self.folder / "accounts.pub").write_bytes(pem)
        tokens = "".join(f'{user}-token,{user},{user},"{group}"\n' for user, group in USERS.items())
        (self.folder / "tokens.csv").write_text(tokens)


def _check_stage(ending: Any, image: str, code: int, message: str) -> Any:
    """As kwok ends a Job's pod, for this image: a moment later, so, and with this last message."""
    stage = copy.deepcopy(ending)
    stage["metadata"]["name"] = image.replace("/", "-").replace(".", "-")
    wanted = {"key": ".spec.containers.[].image", "operator": "In", "values": [image]}
    stage["spec"]["selector"]["matchExpressions"][-1] = wanted
    stage["spec"]["delay"] = {"durationMilliseconds": 200}
    template = stage["spec"]["next"]["statusTemplate"]
    template = template.replace("exitCode: 0", f"exitCode: {code}\n      message: {json.dumps(message)}")
    stage["spec"]["next"]["statusTemplate"] = template if not code else template.replace("Succeeded", "Failed")
    return stage


JOBS_PHASE = '. as $pod | .metadata.ownerReferences.[]? | select(.kind == "Job") | $pod.status.phase'
"""For kwok: the phase of a Job's pod, nothing of any other."""


def _ended_stage(ending: Any, going: Any) -> Any:
    """A Job's pod that is deleted ends before it goes, as a kubelet has it: the Job's controller waits for that."""
    stage = copy.deepcopy(ending)
    stage["metadata"]["name"] = "pod-ended"
    template = stage["spec"]["next"]["statusTemplate"].replace("exitCode: 0", "exitCode: 143")
    stage["spec"]["next"]["statusTemplate"] = template.replace("Succeeded", "Failed")
    going["spec"]["selector"]["matchExpressions"].append(
        {"key": JOBS_PHASE, "operator": "NotIn", "values": ["Running"]}
    )
    stage["spec"]["selector"]["matchExpressions"] = [
        {"key": ".metadata.deletionTimestamp", "operator": "Exists"},
        {"key": JOBS_PHASE, "operator": "In", "values": ["Running"]},
    ]
    return stage


def _certificate(subject: x509.Name, issuer: x509.Name, key: Key, authority: Key) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    identity = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=2))
        .add_extension(identity, critical=False)
        .add_extension(signer, critical=False)
    )


def _private(key: Key) -> bytes:
    shape, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, shape, plain)


def a_plane(*extra: str) -> Iterator[ControlPlane]:
    """A control plane for a fixture; skips where it cannot be had."""
    skip_where_nothing_can_be_tied()
    try:
        plane = ControlPlane(*extra)
    except NoControlPlaneError as missing:
        pytest.skip(str(missing))
    yield plane
    plane.close()


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """The Kubernetes of this test process; put its tests into one group (`xdist_group("kubernetes")`)."""
    yield from a_plane()
