"""A kubelet that joins as a real one does: its token asks for a certificate, by which it says that it is ready."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hostler.drivers.kubernetes.kube_api import Api, KubeResponse
from hostler.drivers.kubernetes.kubeconfig import load_kubeconfig

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
PATIENCE_S = 60.0
UNKNOWN = 401
MUCH = {"cpu": "128", "memory": "2Ti", "pods": "110", "nvidia.com/gpu": "8"}


class Kubelet:
    """`folder` is where its files lie: its key, its certificate, the kubeconfigs made of them."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self._key = ec.generate_private_key(ec.SECP256R1())

    async def ask(self, api: Api, request: str, name: str = "", groups: str = "system:nodes") -> KubeResponse:
        """Ask for the certificate of the node `name` (its own) with the credentials of `api`."""
        subject = [
            x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, groups),
            x509.NameAttribute(x509.NameOID.COMMON_NAME, f"system:node:{name or self.name}"),
        ]
        made = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject)).sign(self._key, hashes.SHA256())
        spec = {
            "signerName": SIGNER,
            "usages": ["digital signature", "client auth"],
            "request": made.public_bytes(serialization.Encoding.PEM),
        }
        body = {"metadata": {"name": request}, "spec": spec}
        return await api.change("POST", REQUESTS, body)

    async def let_in(self, api: Api) -> None:
        """Until the API server knows the bearer, which it does a moment after the token was issued."""
        async with asyncio.timeout(PATIENCE_S):
            while (await api.get(f"{REQUESTS}/none")).status == UNKNOWN:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)

    async def answer(self, api: Api, request: str) -> dict[str, Any]:
        """Returns the request's status once it is signed or denied."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                answer = await api.get(f"{REQUESTS}/{request}")
                assert answer.status == 200, answer
                status: dict[str, Any] = msgspec.json.decode(answer.body)["status"]
                denied = any(one["type"] == "Denied" for one in status.get("conditions", []))
                if denied or "certificate" in status:
                    return status
                await asyncio.sleep(0.05)

    @asynccontextmanager
    async def bootstrapping(self, kubeconfig: Path) -> AsyncIterator[Api]:
        """As the bearer of the token."""
        async with Api(load_kubeconfig(str(kubeconfig)), lambda: None) as api:
            yield api

    async def join(self, kubeconfig: Path, request: str) -> Path:
        """Do what a kubelet does with its bootstrap kubeconfig, until its node is ready; its own kubeconfig."""
        async with self.bootstrapping(kubeconfig) as api:
            await self.let_in(api)
            answer = await self.ask(api, request)
            assert answer.status == 201, answer
            status = await self.answer(api, request)
        assert "certificate" in status, status
        own = self._own(kubeconfig, msgspec.convert(status["certificate"], bytes, strict=False))
        async with Api(load_kubeconfig(str(own)), lambda: None) as api:
            await self.ready(api)
        return own

    async def live(self, own: Path) -> None:
        """Run the pods of its node, and end those that are to end, until cancelled."""
        async with Api(load_kubeconfig(str(own)), lambda: None) as api:
            while True:
                answer = await api.get("/api/v1/pods", fieldSelector=f"spec.nodeName={self.name}")
                if answer.status == 200:
                    for pod in msgspec.json.decode(answer.body)["items"]:
                        await self._tend(api, pod)
                await asyncio.sleep(0.1)

    async def _tend(self, api: Api, pod: Any) -> None:
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        if "deletionTimestamp" in pod["metadata"]:
            await api.change("DELETE", path, {"gracePeriodSeconds": 0})
        elif pod["status"].get("phase") == "Pending":
            ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            await api.change("PATCH", f"{path}/status", {"status": ready}, STRATEGIC_PATCH)

    async def ready(self, api: Api) -> None:
        """Say on its node that it is ready."""
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it has joined"}
        path = f"/api/v1/nodes/{self.name}/status"
        status = {"conditions": [ready], "allocatable": MUCH, "capacity": MUCH}
        answer = await api.change("PATCH", path, {"status": status}, STRATEGIC_PATCH)
        assert answer.status == 200, answer

    def _own(self, kubeconfig: Path, certificate: bytes) -> Path:
        """The kubeconfig with the certificate in the place of the token."""
        private, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        key, cert = self.folder / f"{self.name}.key", self.folder / f"{self.name}.crt"
        key.write_bytes(self._key.private_bytes(serialization.Encoding.PEM, private, plain))
        cert.write_bytes(certificate)
        document = json.loads(kubeconfig.read_text())
        document["users"][0]["user"] = {"client-certificate": str(cert), "client-key": str(key)}
        path = self.folder / f"{self.name}.kubeconfig"
        path.write_text(json.dumps(document))
        path.chmod(0o600)
        return path
