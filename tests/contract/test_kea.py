"""Kea's client classes: pushed into a real kea-dhcp4, and into a socket that answers badly."""

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hostler.core.state.boot import BootConfiguration, BootLoader
from hostler.drivers.boot.kea_config import client_classes, merged
from hostler.drivers.boot.kea_socket import push
from hostler.ports import PortError, RefusedError, UnreachableError
from tests.tied_processes import tied

KEA = shutil.which("kea-dhcp4") or shutil.which("kea-dhcp4", path="/usr/sbin")
BOOTS = BootConfiguration(
    "http://10.0.0.1:8081", loaders={a: BootLoader(f"{a}.efi", "ab" * 32) for a in ("x86_64", "arm64")}
)
needs_kea = pytest.mark.skipif(KEA is None, reason="kea-dhcp4 missing: run scripts/system-packages")


def is_there(socket: str) -> bool:
    return Path(socket).exists()


def log_of(folder: str) -> str:
    return (Path(folder) / "log").read_text()


@asynccontextmanager
async def kea(**more: Any) -> AsyncIterator[str]:
    """A kea-dhcp4 of its own that listens on no network. Its control socket's path is short: the kernel has a limit."""
    assert KEA is not None
    with tempfile.TemporaryDirectory(prefix="kea") as folder:
        socket = f"{folder}/s"
        dhcp4 = {
            "interfaces-config": {"interfaces": []},
            "control-socket": {"socket-type": "unix", "socket-name": socket},
            "lease-database": {"type": "memfile", "persist": False},
            "subnet4": [{"id": 7, "subnet": "10.0.0.0/16", "pools": [{"pool": "10.0.1.1-10.0.1.9"}]}],
            **more,
        }
        config = Path(folder) / "kea.json"
        config.write_text(json.dumps({"Dhcp4": dhcp4}))
        env = {**os.environ, "KEA_LOCKFILE_DIR": folder, "KEA_PIDFILE_DIR": folder}
        log = (Path(folder) / "log").open("wb")
        server = await asyncio.create_subprocess_exec(*tied(KEA, "-c", str(config)), env=env, stdout=log, stderr=log)
        try:
            async with asyncio.timeout(60):
                while not is_there(socket):
                    assert server.returncode is None, log_of(folder)
                    await asyncio.sleep(0.05)
            yield socket
        finally:
            if server.returncode is None:
                server.terminate()
            await server.wait()
            log.close()


async def classes_of(socket: str) -> dict[str, dict[str, Any]]:
    reader, writer = await asyncio.open_unix_connection(socket)
    writer.write(b'{"command": "config-get"}')
    found = json.loads(await reader.read())["arguments"]["Dhcp4"]
    writer.close()
    assert found["subnet4"][0]["id"] == 7
    return {one["name"]: one for one in found.get("client-classes", [])}


@needs_kea
async def test_kea_itself_takes_the_classes_and_keeps_its_own() -> None:
    """Mutants: the site's classes are replaced; what is there already is set again; subnets are lost."""
    theirs = {"name": "printers", "test": "substring(option[60].hex,0,3) == 'HP '"}
    stale = {"name": "hostler-old", "test": "option[77].hex == 'iPXE'"}
    async with kea(**{"client-classes": [theirs, stale]}) as socket:
        assert await push(socket, BOOTS) == "Kea has the classes; its file is as it was"
        found = await classes_of(socket)
        assert list(found) == ["printers", *(one["name"] for one in client_classes(BOOTS))]
        assert found["hostler-http-arm64"]["boot-file-name"] == "http://10.0.0.1:8081/loader/arm64.efi"
        assert found["hostler-ipxe"]["boot-file-name"] == "http://10.0.0.1:8081/ipxe"
        await push(socket, BOOTS)
        assert list(await classes_of(socket)) == list(found)


@needs_kea
async def test_what_kea_refuses_changes_nothing() -> None:
    """Mutant: classes are set without having been tested."""
    async with kea() as socket:
        with pytest.raises(RefusedError, match="config-test"):
            await push(socket, BootConfiguration("http://" + "x" * 200))
        assert await classes_of(socket) == {}


@asynccontextmanager
async def bad_kea(*answers: bytes) -> AsyncIterator[tuple[str, list[str]]]:
    """A socket with these answers, the last one again and again, and the commands that it was asked."""
    left, asked = list(answers), []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(json.loads(await reader.read(1 << 20))["command"])
        writer.write(left.pop(0) if len(left) > 1 else left[0])
        await writer.drain()
        writer.close()

    with tempfile.TemporaryDirectory(prefix="kea") as folder:
        server = await asyncio.start_unix_server(answer, f"{folder}/s")
        async with server:
            yield f"{folder}/s", asked


GOT = b'{"result": 0, "arguments": {"Dhcp4": {"subnet4": []}}}'


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ((b"",), "does not answer as Kea does"),
        ((b"<html>",), "does not answer as Kea does"),
        ((b'{"result": 0, "arguments": {"Dhcp6": {}}}',), "no section Dhcp4"),
        ((b'{"result": 0, "arguments": {"Dhcp4": {"client-classes": 5}}}',), "no list of classes"),
        ((b'{"result": 1, "text": "not now"}',), "Kea refuses config-get: not now"),
        ((GOT, b'{"result": 1, "text": "bad test"}'), "Kea refuses config-test: bad test"),
        ((GOT, b'{"result": 0}', b'{"result": 1, "text": "busy"}'), "Kea refuses config-set: busy"),
        ((GOT, b'{"result": 0}', b'{"result": 0}', GOT), "does not show hostler-ipxe"),
    ],
)
async def test_a_bad_answer_is_told(answers: tuple[bytes, ...], said: str) -> None:
    """Mutants: a refusal counts as done; done counts though the classes are not shown."""
    async with bad_kea(*answers) as (socket, asked):
        with pytest.raises(PortError) as refused:
            await push(socket, BOOTS)
        assert said in str(refused.value)
        assert "config-set" not in asked or len(answers) > 2


async def test_no_socket_is_unreachable(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError):
        await push(str(tmp_path / "none"), BOOTS)


def test_classes_are_replaced_by_name() -> None:
    once = merged({"client-classes": [{"name": "a"}], "valid-lifetime": 7}, BOOTS)
    assert merged(once, BOOTS) == once
    assert once["valid-lifetime"] == 7
