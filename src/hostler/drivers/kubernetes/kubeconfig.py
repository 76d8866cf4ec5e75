"""Reads one context of a kubeconfig, or a pod's own service account: API server, authority and user."""

import os
import ssl
from base64 import b64decode, b64encode
from pathlib import Path
from tempfile import NamedTemporaryFile

import msgspec
from msgspec import Struct
from yarl import URL

from hostler.core.policy import yaml_tree
from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.drivers.kubernetes.credentials import Credentials, ExecPlugin, FixedCredentials, TokenFile, Variable

IN_CLUSTER = "in-cluster"
"""In the place of a kubeconfig's path: the service account of the pod that Hostler runs in."""

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
INSTEAD = "name a kubeconfig that `kubectl --kubeconfig` accepts, and one of its contexts"


class KubernetesAccess(Struct, frozen=True):
    """How one API server is reached and entered. `ca` is PEM, "" for the system's authorities.

    `for_nodes` is False where the address is one that only pods reach.
    """

    server: str
    tls: ssl.SSLContext
    credentials: Credentials
    ca: str = ""
    for_nodes: bool = True


class _Cluster(Struct, rename="kebab"):
    server: str = ""
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool = False


class _Plugin(Struct, rename="camel"):
    command: str
    api_version: str
    args: list[str] | None = None
    env: list[Variable] | None = None


class _User(Struct, rename="kebab"):
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    exec: _Plugin | None = None
    username: str | None = None
    password: str | None = None
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None


class _Context(Struct):
    cluster: str
    user: str = ""


class _NamedCluster(Struct):
    name: str
    cluster: _Cluster


class _NamedUser(Struct):
    name: str
    user: _User | None = None


class _NamedContext(Struct):
    name: str
    context: _Context


class _Document(Struct, rename="kebab"):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str = ""


def load_kubeconfig(path: str, context: str = "") -> KubernetesAccess:
    """How the cluster of a context (the current one for "") is reached.

    Raises InvalidInputError for a file or context that cannot be used, and for secrets that others can read.
    """
    try:
        return _service_account() if path == IN_CLUSTER else _of_file(Path(path).expanduser(), context)
    except (OSError, KeyError, ValueError) as wrong:
        said = f"{wrong.args[0]} is not set" if isinstance(wrong, KeyError) else " ".join(str(wrong).split())[:300]
        raise InvalidInputError((Problem(path, 0, f"no usable kubeconfig: {said}", INSTEAD),)) from wrong


def _service_account() -> KubernetesAccess:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    token, ca = SERVICE_ACCOUNT / "token", (SERVICE_ACCOUNT / "ca.crt").read_text(encoding="ascii")
    token.read_bytes()
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return KubernetesAccess(server, ssl.create_default_context(cadata=ca), TokenFile(token), ca, for_nodes=False)


def _of_file(path: Path, context: str) -> KubernetesAccess:
    cluster, user = _chosen(path, context)
    if path.stat().st_mode & 0o077 and (user.token or user.password or user.client_key_data):
        raise InvalidInputError((Problem(str(path), 0, "others can read the secret in it", f"chmod 600 {path}"),))
    here = path.parent
    ca = _pem(here, cluster.certificate_authority, cluster.certificate_authority_data)
    tls = ssl.create_default_context(cadata=ca or None)
    if cluster.insecure_skip_tls_verify and not ca:
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    if certificate := _pem(here, user.client_certificate, user.client_certificate_data):
        _identify(tls, certificate, _pem(here, user.client_key, user.client_key_data))
    return KubernetesAccess(server_url(cluster.server), tls, _credentials(here, user), ca)


def _chosen(path: Path, context: str) -> tuple[_Cluster, _User]:
    """The context's cluster and user. Raises InvalidInputError, OSError, ValueError."""
    found = msgspec.convert(yaml_tree.read(str(path), _text(path)).value, _Document)
    name = context or found.current_context
    meant = next((one.context for one in found.contexts or () if one.name == name), None)
    if meant is None:
        raise ValueError(f"it has no context '{name[:100]}'; name one that `kubectl config get-contexts` lists")
    cluster = next((one.cluster for one in found.clusters or () if one.name == meant.cluster), None)
    if cluster is None or not cluster.server:
        raise ValueError(
            f"its context '{name[:100]}' names no cluster with a server; write its cluster's server in the kubeconfig"
        )
    user = next((one.user for one in found.users or () if one.name == meant.user), None)
    if user is None:
        problem = Problem(str(path), 0, "its context names no user", "give the context a user")
        raise InvalidInputError((problem,))
    return cluster, user


def server_url(said: object) -> str:
    """The address of an API server, without a slash at its end. Raises ValueError for what is none."""
    if not isinstance(said, str) or not said.isascii() or not said.isprintable() or " " in said:
        raise ValueError(f"{str(said)[:100]!r} is no address of an API server; write https://HOST:PORT")
    url = URL(said, encoded=True)
    if url.scheme not in ("https", "http") or not url.host or url.user or url.query_string or url.fragment:
        raise ValueError(f"'{said[:100]}' is no address of an API server: write https://HOST:PORT")
    _ = url.port
    return said.rstrip("/")


def _text(path: Path) -> str:
    """The file's text; of one that is too long as much as shows that. Raises OSError, ValueError."""
    with path.open(encoding="utf-8") as file:
        return file.read(yaml_tree.MAX_BYTES + 1)


def _credentials(here: Path, user: _User) -> Credentials:
    """Credentials of the user, in kubectl's order of preference."""
    if user.token_file:
        return TokenFile(here / user.token_file)
    if user.token:
        return FixedCredentials(f"Bearer {user.token}")
    if user.exec:
        plugin = user.exec
        return ExecPlugin(_command(here, plugin.command), plugin.args or [], plugin.env or [], plugin.api_version)
    if user.username and user.password:
        return FixedCredentials(f"Basic {b64encode(f'{user.username}:{user.password}'.encode()).decode()}")
    return FixedCredentials("")


def _command(here: Path, command: str) -> str:
    """A path is relative to the kubeconfig, a bare name is looked for on the PATH."""
    return str(here / command) if "/" in command else command


def _pem(here: Path, file: str | None, data: str | None) -> str:
    """The PEM that stands there itself, or in a file, "" for neither. Raises OSError, ValueError."""
    if data:
        return b64decode(data).decode("ascii")
    return (here / file).read_text(encoding="ascii") if file else ""


def _identify(tls: ssl.SSLContext, certificate: str, key: str) -> None:
    """Have us known by a client certificate; `ssl` takes it from files only. Raises OSError (ssl.SSLError)."""
    with NamedTemporaryFile(prefix="hostler-", suffix=".pem") as both:
        both.write(f"{certificate}\n{key}".encode())
        both.flush()
        tls.load_cert_chain(both.name)
