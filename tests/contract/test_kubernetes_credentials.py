"""Identities by which a real API server knows us: renewed tokens, programs that log in, certificates, authorities."""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hostler.core.state.input_problems import InvalidInputError
from hostler.drivers.kubernetes import credentials, kubeconfig
from hostler.drivers.kubernetes.kube_api import Api, KubeResponse
from hostler.drivers.kubernetes.kubeconfig import IN_CLUSTER, load_kubeconfig
from hostler.ports import FencedError, UnreachableError
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.xdist_group("kubernetes"), pytest.mark.nightly("a real control plane runs beside it")]

NODES = "/api/v1/nodes?limit=1"
CONTEXT = "contexts: [{name: x, context: {cluster: c}}], current-context: x"
V1 = "client.authentication.k8s.io/v1"


def written(folder: Path, server: str, user: dict[str, Any], **cluster: Any) -> str:
    """A kubeconfig with this user, as `kubectl config` writes it."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "default"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return str(path)


async def asked(path: str, times: int = 1) -> list[KubeResponse]:
    async with Api(load_kubeconfig(path), lambda: None) as api:
        return [await api.get(NODES) for _ in range(times)]


def data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


async def test_a_token_that_is_renewed_in_its_file_counts_from_then_on(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    """Mutants: a token is read once; who is refused asks again without end."""
    (tmp_path / "token").write_text("has-expired\n")
    path = written(
        tmp_path, control_plane.url, {"tokenFile": "token"}, **{"certificate-authority": str(control_plane.ca)}
    )
    async with Api(load_kubeconfig(path), lambda: None) as api:
        assert (await api.get(NODES)).status == 401
        (tmp_path / "token").write_text("admin-token\n")
        assert (await api.get(NODES)).status == 200
        async with api.watch("/api/v1/nodes", {"timeoutSeconds": "1"}, 5.0) as lines:
            assert [json.loads(line)["type"] async for line in lines]
        (tmp_path / "token").unlink()
        assert (await api.get(NODES)).status == 200, "what was read is good as long as it is taken"


@pytest.mark.parametrize("text", ["", "two words", "a\r\nX-Evil: 1", "é"])
async def test_a_file_without_a_token_is_no_way_in(control_plane: ControlPlane, tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text)
    path = written(tmp_path, control_plane.url, {"tokenFile": "token"}, **{"insecure-skip-tls-verify": True})
    with pytest.raises(UnreachableError, match="no token"):
        await asked(path)


class Plugin:
    """A program that logs in: it gives each token of `tokens` in turn, the last one for ever, and notes its runs."""

    def __init__(self, folder: Path, *tokens: str, expires: str = "", ends: str = "exit 0") -> None:
        self.noted = folder / "runs"
        self.noted.touch()
        (folder / "tokens").write_text("\n".join(tokens) + "\n")
        status = '"token": "%s"' + (f', "expirationTimestamp": "{expires}"' if expires else "")
        said = f'{{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {{{status}}}}}\\n'
        script = folder / "login"
        script.write_text(f"""#!/bin/sh
echo "$REGION $1 $KUBERNETES_EXEC_INFO" >> {self.noted}
token=$(head -n $(wc -l < {self.noted}) {folder}/tokens | tail -n 1)
printf '{said}' "$token"
{ends}
""")
        script.chmod(0o755)

    def user(self, version: str = V1) -> dict[str, Any]:
        env = [{"name": "REGION", "value": "eu-1"}]
        plugin = {
            "apiVersion": version,
            "command": "./login",
            "args": ["get-token"],
            "env": env,
            "interactiveMode": "Never",
        }
        return {"exec": plugin | {"provideClusterInfo": False}}

    @property
    def runs(self) -> list[str]:
        return self.noted.read_text().splitlines()


@pytest.mark.parametrize("version", credentials.VERSIONS)
async def test_a_program_logs_in_once_and_anew_when_its_token_is_refused(
    control_plane: ControlPlane, tmp_path: Path, version: str
) -> None:
    """Mutants: it is run for each request, or side by side; a refused token is kept; v1 is not taken."""
    plugin = Plugin(tmp_path, "has-expired", "admin-token")
    authority = {"certificate-authority-data": data(control_plane.ca)}
    path = written(tmp_path, control_plane.url, plugin.user(version), **authority)
    async with Api(load_kubeconfig(path), lambda: None) as api:
        found = await asyncio.gather(*(api.get(NODES) for _ in range(8)))
    assert [answer.status for answer in found] == [200] * 8
    first, second = plugin.runs
    region, word, info = first.split(" ", 2)
    assert (region, word, first) == ("eu-1", "get-token", second)
    assert json.loads(info) == {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}


async def test_a_token_is_fetched_anew_before_it_expires(control_plane: ControlPlane, tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, "admin-token", expires="2026-01-01T00:00:00Z")
    await asked(written(tmp_path, control_plane.url, plugin.user(), **{"insecure-skip-tls-verify": True}), times=3)
    assert len(plugin.runs) == 3
    lasting = Plugin(tmp_path, "admin-token", expires="2999-01-01T00:00:00Z")
    lasting.noted.write_text("")
    await asked(written(tmp_path, control_plane.url, lasting.user(), **{"insecure-skip-tls-verify": True}), times=3)
    assert len(lasting.runs) == 1


@pytest.mark.parametrize(
    ("said", "ends", "why"),
    [
        ("admin-token", "echo 'your session has expired' >&2; exit 1", "ended with 1: your session has expired"),
        ("admin-token", "echo more", "the ExecCredential of .* cannot be read"),
        ("", "exit 0", "no token"),
        ("admin-token", "sleep 600", "did not end"),
        ("admin-token", "yes", "did not end"),
    ],
)
async def test_a_program_that_fails_is_no_answer(
    said: str, ends: str, why: str, control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says why the program failed; its children end with it. Mutant: a program that hangs is waited for."""
    monkeypatch.setattr(credentials, "PLUGIN_S", 1.0)
    plugin = Plugin(tmp_path, said, ends=ends)
    path = written(tmp_path, control_plane.url, plugin.user(), **{"insecure-skip-tls-verify": True})
    with pytest.raises(UnreachableError, match=why):
        await asked(path)


async def test_a_program_that_is_not_there_is_no_answer(control_plane: ControlPlane, tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": V1, "command": "no-such-login", "args": None, "env": None}}
    path = written(tmp_path, control_plane.url, user, **{"insecure-skip-tls-verify": True})
    with pytest.raises(UnreachableError, match="cannot be run"):
        await asked(path)


async def test_a_client_certificate_and_an_authority_may_lie_in_files_or_stand_there(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    """Mutants: data are taken for a path; a key stays behind in a file."""
    ca, key = control_plane.folder / "ca.crt", control_plane.folder / "ca.key"
    mine, my_key = tmp_path / "me.crt", tmp_path / "me.key"
    await _signed(ca, key, mine, my_key)
    files = {"client-certificate": "me.crt", "client-key": str(my_key)}
    (found,) = await asked(written(tmp_path, control_plane.url, files, **{"certificate-authority": str(ca)}))
    inline = {"client-certificate-data": data(mine), "client-key-data": data(my_key)}
    (other,) = await asked(written(tmp_path, control_plane.url, inline, **{"certificate-authority-data": data(ca)}))
    for answer in (found, other):
        assert (answer.status, "ann" in answer.said().message) == (403, True), "it is known who asks"


async def _signed(ca: Path, key: Path, mine: Path, my_key: Path) -> None:
    """A certificate for `ann` by openssl, a tool of its own."""
    request = (
        "openssl",
        "req",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=ann",
        "-keyout",
        my_key,
        "-out",
        f"{mine}.csr",
    )
    sign = ("openssl", "x509", "-req", "-in", f"{mine}.csr", "-CA", ca, "-CAkey", key, "-days", "1", "-out", mine)
    for command in (request, (*sign, "-CAcreateserial", "-CAserial", f"{mine}.srl")):
        child = await asyncio.create_subprocess_exec(*map(str, command), stderr=asyncio.subprocess.DEVNULL)
        assert await child.wait() == 0


async def test_nobody_is_told_a_token_who_is_not_vouched_for(control_plane: ControlPlane, tmp_path: Path) -> None:
    """Mutant: certificates are not verified."""
    for cluster in ({}, {"certificate-authority": "other.crt"}):
        other = tmp_path / "other"
        other.mkdir(exist_ok=True)
        await _self_signed(tmp_path / "other.crt")
        path = written(tmp_path, control_plane.url, {"token": "admin-token"}, **cluster)
        with pytest.raises(UnreachableError, match="ertificate"):
            await asked(path)


async def _self_signed(path: Path) -> None:
    command = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=other", "-days", "1")
    words = (*command, "-keyout", f"{path}.key", "-out", str(path))
    child = await asyncio.create_subprocess_exec(*words, stderr=asyncio.subprocess.DEVNULL)
    assert await child.wait() == 0


async def test_a_pods_own_account_is_read_where_pods_have_it(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", tmp_path)
    with pytest.raises(InvalidInputError, match="KUBERNETES_SERVICE_HOST is not set"):
        load_kubeconfig(IN_CLUSTER)
    host, _, port = control_plane.url.removeprefix("https://").partition(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    with pytest.raises(InvalidInputError, match=r"ca\.crt"):
        load_kubeconfig(IN_CLUSTER)
    (tmp_path / "ca.crt").write_bytes(control_plane.ca.read_bytes())
    (tmp_path / "token").write_text("admin-token")
    (found,) = await asked(IN_CLUSTER)
    assert found.status == 200
    assert Api(load_kubeconfig(IN_CLUSTER), lambda: None).endpoint is None, "nodes do not reach it there"


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ("clusters: null", "no context ''"),
        (f"{{{CONTEXT}}}", "no cluster with a server"),
        (f"{{{CONTEXT}, clusters: [{{name: c, cluster: {{server: 'https://h'}}}}]}}", "names no user"),
        ("[1, 2", "no usable kubeconfig"),
        ("contexts: 7", "no usable kubeconfig"),
        ("a: " + "[" * 3000, "no usable kubeconfig"),
    ],
)  # fmt: skip
def test_what_is_no_kubeconfig_is_told(document: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(document)
    with pytest.raises(InvalidInputError, match=why):
        load_kubeconfig(str(path))


@pytest.mark.parametrize(
    ("user", "why"),
    [
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v9", "command": "x"}}, "v9"),
        ({"client-certificate-data": "AAAA", "client-key-data": "AAAA"}, "usable"),
        ({"client-certificate": "nowhere.crt"}, "nowhere"),
    ],
)
def test_a_user_that_cannot_be_is_told_before_anybody_is_asked(user: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=why):
        load_kubeconfig(written(tmp_path, "https://127.0.0.1:1", user))


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "https://127.0.0.1:1", {"token": "secret"})
    Path(path).chmod(0o644)
    with pytest.raises(InvalidInputError, match="others can read"):
        load_kubeconfig(path)


@asynccontextmanager
async def a_server(*answers: bytes) -> AsyncIterator[tuple[str, list[str]]]:
    """A server that gives these answers, then hangs up at the next request: its address, and what it was asked."""
    heard: list[str] = []
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next((int(line[16:]) for line in head.split("\r\n") if line.startswith("Content-Length: ")), 0)
                await reader.readexactly(length)
                heard.append(head.split("\r\n")[0])
                if not left:
                    return
                writer.write(left.pop(0))
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heard


FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "POST"])
async def test_a_change_is_sent_once_even_where_a_kept_connection_breaks(method: str, tmp_path: Path) -> None:
    """Mutant: the client sends what it takes for idempotent again by itself, behind nobody's fence."""
    fences: list[None] = []
    async with a_server(FINE) as (url, heard):
        path = written(tmp_path, url, {"token": "t"})
        async with Api(load_kubeconfig(path), lambda: fences.append(None)) as api:
            assert (await api.get("/api")).status == 200
            with pytest.raises(UnreachableError):
                await api.change(method, "/api/v1/nodes/n1", {})
    assert [line.split()[0] for line in heard] == ["GET", method]
    assert len(fences) == 1


async def test_who_is_asked_again_with_another_token_passes_the_fence_again(tmp_path: Path) -> None:
    """Mutant: what a program takes to log in comes between the fence and the change."""
    refused = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"
    plugin = Plugin(tmp_path, "old", "new")

    def fence() -> None:
        assert plugin.runs, "the login was before it"
        if len(plugin.runs) > 1:
            raise FencedError("another controller decides by now")

    async with a_server(refused, FINE) as (url, heard):
        path = written(tmp_path, url, plugin.user())
        async with Api(load_kubeconfig(path), fence) as api:
            with pytest.raises(FencedError):
                await api.change("PATCH", "/api/v1/nodes/n1", {})
    assert len(heard) == 1


async def test_a_redirect_is_not_followed_and_a_path_is_sent_as_it_is_written(tmp_path: Path) -> None:
    """Mutants: our token goes wherever a server points; %2F becomes a slash; a server's own path is lost."""
    moved = b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
    async with a_server(moved) as (url, heard):
        path = written(tmp_path, f"{url}/k8s/clusters/c-1/", {"username": "ann", "password": "p"})
        async with Api(load_kubeconfig(path), lambda: None) as api:
            answer = await api.get("/api/v1/nodes/a%2Fb?x=%2C", limit="1", selector="a=b,c")
    assert answer.status == 302
    assert heard == ["GET /k8s/clusters/c-1/api/v1/nodes/a%2Fb?x=%2C&limit=1&selector=a%3Db%2Cc HTTP/1.1"]


def test_an_authority_of_the_systems_own_is_trusted_where_none_is_named(tmp_path: Path) -> None:
    found = load_kubeconfig(written(tmp_path, "https://127.0.0.1:1", {}))
    assert (found.tls.verify_mode, found.tls.check_hostname) == (ssl.CERT_REQUIRED, True)
