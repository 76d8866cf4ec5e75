"""A bootstrap token that is meant for one node: its name, its groups, its Secret, and what it may be signed for. Pure.

Kubernetes reads such Secrets of kube-system itself: who shows `id.secret` is `system:bootstrap:<id>` in
`system:bootstrappers` and in the groups that the Secret names, until it expires or is deleted.
"""

import hashlib
from datetime import datetime
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID
from msgspec import Struct

from hostler.drivers.kubernetes.node_status import label
from hostler.drivers.kubernetes.wire import OURS

SPACE = "kube-system"
KIND = "bootstrap.kubernetes.io/token"
GROUP = "system:bootstrappers:hostler"
"""Group of every holder of a token of ours; RBAC lets it ask for certificates, and nothing else."""

SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
ID_LENGTH, SECRET_LENGTH = 6, 16
MAX_DESCRIPTION = 200
USAGES = frozenset({"client auth", "digital signature", "key encipherment"})
NEEDED = frozenset({"client auth", "digital signature"})
"""Usages of a kubelet's client key; a third goes with RSA keys."""

UNREADABLE = (
    ValueError,
    TypeError,
    InvalidSignature,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""Errors that `cryptography` raises of requests and certificates that it cannot read, whoever wrote them."""


class Meant(Struct, frozen=True):
    """Purpose of a token: the node, its name in the cluster, and the operation and plan that issue it."""

    node: str
    name: str
    operation: str
    plan: str


class SigningRequest(Struct, frozen=True):
    """A CertificateSigningRequest: what is asked for, and who asks, as the API server has recognised him."""

    name: str
    signer: str
    user: str
    groups: tuple[str, ...]
    usages: tuple[str, ...]
    request: bytes


def token_id(owner: str, cluster: str, meant: Meant) -> str:
    """The public half, the same for whoever computes it: what was issued can be deleted without having been read."""
    digest = hashlib.sha256(f"{owner}\0{cluster}\0{meant.node}\0{meant.plan}".encode()).digest()
    number = int.from_bytes(digest[:8])
    return "".join(ALPHABET[number // len(ALPHABET) ** place % len(ALPHABET)] for place in range(ID_LENGTH))


def group_of(name: str) -> str:
    """The group of one node's tokens; a dot of its name is a colon there, as no group of a token may have dots."""
    return f"{GROUP}:{name.replace('.', ':')}"


def secret_name(identity: str) -> str:
    """How Kubernetes wants the Secret of a token to be called."""
    return f"bootstrap-token-{identity}"


def body_of(identity: str, secret: str, meant: Meant, expires: datetime) -> dict[str, Any]:
    """The Secret."""
    told = {"node": label(meant.node), "operation": label(meant.operation)}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": KIND,
        "metadata": {
            "name": secret_name(identity),
            "namespace": SPACE,
            "labels": {f"{OURS}{key}": value for key, value in told.items()},
        },
        "stringData": {
            "token-id": identity,
            "token-secret": secret,
            "expiration": f"{expires:%Y-%m-%dT%H:%M:%SZ}",
            "usage-bootstrap-authentication": "true",
            "usage-bootstrap-signing": "true",
            "auth-extra-groups": f"{GROUP},{group_of(meant.name)}",
            "description": f"Hostler lets {meant.name} join ({meant.operation})"[:MAX_DESCRIPTION],
        },
    }


def wrong_with(wanted: SigningRequest, identity: str, name: str) -> str:
    """Why what the bearer of this token asks for is not signed, "" where it is the certificate of its own kubelet."""
    if wanted.user != f"system:bootstrap:{identity}" or group_of(name) not in wanted.groups:
        return f"it was not asked for with the token of {name}"
    if wanted.signer != SIGNER:
        return f"its signer is {wanted.signer[:100]}: a token of a node is for {SIGNER}"
    usages = frozenset(wanted.usages)
    if not NEEDED <= usages <= USAGES:
        return f"it is for {', '.join(sorted(usages))[:100]}: a kubelet's is for {', '.join(sorted(NEEDED))}"
    return _wrong_with_request(wanted.request, name)


def _wrong_with_request(pem: bytes, name: str) -> str:
    try:
        asked = x509.load_pem_x509_csr(pem)
        names = [str(one.value) for one in asked.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        groups = [str(one.value) for one in asked.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
        subject, parts = asked.subject.rfc4514_string(), len(list(asked.subject))
        extended, signed = len(asked.extensions), asked.is_signature_valid
    except UNREADABLE as wrong:
        return f"what it asks for cannot be read: {str(wrong)[:200]}"
    if (names, groups) != ([f"system:node:{name}"], ["system:nodes"]) or parts != 2:
        return f"it is for {subject[:99]}: its token is for system:node:{name} of system:nodes"
    if extended or not signed:
        return "it asks for further names or extensions, or its signature does not fit its key"
    return ""


def ca_hash(pem: str) -> str:
    """The authority's public key as kubeadm's --discovery-token-ca-cert-hash takes it. Raises ValueError."""
    try:
        key = x509.load_pem_x509_certificate(pem.encode()).public_key()
    except UNREADABLE as odd:
        raise ValueError(
            f"the authority's certificate cannot be read: {str(odd)[:200]}"
            "; mend certificate-authority-data in the ConfigMap cluster-info of kube-public"
        ) from odd
    return "sha256:" + hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()
