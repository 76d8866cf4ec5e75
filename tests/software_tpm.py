"""A TPM 2.0 that swtpm plays, with an endorsement certificate of an authority of its own."""

import asyncio
import shutil
from asyncio.subprocess import DEVNULL
from pathlib import Path

from tests.end_to_end.processes import run
from tests.tied_processes import tied

NEEDED = ("swtpm", "swtpm_setup", "swtpm_localca", "tpm2_createek")


def missing_for_tpm() -> str:
    """Why no TPM can be played here, "" where one can."""
    absent = [name for name in NEEDED if shutil.which(name) is None]
    return f"{', '.join(absent)} missing: run scripts/system-packages" if absent else ""


class SoftwareTpm:
    """A TPM played by swtpm, with an endorsement certificate of an authority of its own, behind tpm2-tools."""

    def __init__(self, folder: Path, *, in_a_machine: bool = False) -> None:
        """`in_a_machine`: QEMU hands its requests on; otherwise tpm2-tools ask it at `tcti`."""
        self.folder = folder
        self.control = folder / "socket.ctrl"
        self._in_a_machine = in_a_machine
        self.tcti = f"swtpm:path={folder}/socket"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self.folder.mkdir()
        authority = self.folder / "ca"
        authority.mkdir()
        (self.folder / "localca.conf").write_text(
            f"statedir = {authority}\nsigningkey = {authority}/key.pem\nissuercert = {authority}/cert.pem\n"
            f"certserial = {authority}/serial\n"
        )
        (self.folder / "setup.conf").write_text(
            f"create_certs_tool = {shutil.which('swtpm_localca')}\n"
            f"create_certs_tool_config = {self.folder}/localca.conf\n"
            "create_certs_tool_options = /etc/swtpm-localca.options\n"
        )
        made = ("swtpm_setup", "--tpm2", "--tpmstate", str(self.folder), "--create-ek-cert", "--overwrite")
        code, said = await run(*made, "--config", str(self.folder / "setup.conf"))
        assert code == 0, said
        words = ("socket", "--tpm2", "--tpmstate", f"dir={self.folder}", "--ctrl", f"type=unixio,path={self.control}")
        direct = ("--flags", "startup-clear", "--server", f"type=unixio,path={self.folder}/socket")
        self._process = await asyncio.create_subprocess_exec(
            *tied("swtpm", *words, *(() if self._in_a_machine else direct)), stdout=DEVNULL, stderr=DEVNULL
        )
        async with asyncio.timeout(20):
            while not self.control.exists():  # noqa: ASYNC110 - a socket has no event
                await asyncio.sleep(0.02)

    async def end(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()

    def authorities(self) -> str:
        return "".join(path.read_text() for path in sorted((self.folder / "ca").glob("*cert.pem")))
