"""The image of a boot medium: made by real tools, read back by them, and refused where it has no room for a script."""

import subprocess
from pathlib import Path

import pytest

from hostler.cli.commands import boot
from hostler.core.boot.ipxe import ROOM, ROOM_FOR_SCRIPT, first_script
from hostler.drivers.boot import medium_image
from hostler.drivers.boot.medium_image import MediumParts, make_medium
from hostler.ports import RefusedError
from hostler.server.boot.medium_template import NoTemplateError, script_of, template_of
from tests.boot_guest import IPXE_EFI, IPXE_KERNEL, no_medium

needs_tools = pytest.mark.skipif(bool(no_medium()), reason=no_medium() or "they are here")


@needs_tools
@pytest.mark.parametrize("bios", [False, True])
def test_what_uefi_and_bios_start_is_on_it(tmp_path: Path, *, bios: bool) -> None:
    """Mutants: the loader lies where no UEFI looks; one script is left as it was; there is no entry for UEFI."""
    out = tmp_path / "boot.iso"
    make_medium(MediumParts(IPXE_EFI, bios=IPXE_KERNEL if bios else None), out)
    template = template_of(out)
    assert len(template.places) == (3 if bios else 2)
    script = script_of(first_script("http://10.0.0.1:8081/n/n1/secret/script", bare=True))
    out.write_bytes(template.read(script, 0, template.size))
    listed = _said("xorriso", "-indev", str(out), "-report_el_torito", "plain")
    assert ("BIOS" in listed, "UEFI" in listed) == (bios, True)
    fat = tmp_path / "efi.img"
    _said("xorriso", "-osirrox", "on", "-indev", str(out), "-extract", "/efi.img", str(fat))
    fat.chmod(0o600)
    for name in ("autoexec.ipxe", "EFI/BOOT/autoexec.ipxe"):
        assert _said("mtype", "-i", str(fat), f"::/{name}").rstrip() == script.decode().rstrip()
    kept = tmp_path / "loader"
    _said("mcopy", "-i", str(fat), "::/EFI/BOOT/BOOTX64.EFI", str(kept))
    assert kept.read_bytes() == IPXE_EFI.read_bytes()


def _said(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@needs_tools
def test_the_command_prints_its_line_of_the_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "boot.iso"
    assert boot.medium(str(IPXE_EFI), str(out), arch="arm64") == 0
    told = capsys.readouterr()
    assert told.out.startswith("  media: {files: {arm64: {file: boot.iso, sha256: ")
    assert ("looks for no script on its medium" in told.err) is (b"autoexec.ipxe" not in IPXE_EFI.read_bytes())


@needs_tools
@pytest.mark.parametrize(("text", "said"), [(b"MZ file:autoexec.ipxe", ""), (b"MZ of 2019", "take an iPXE of 2021")])
def test_a_loader_that_looks_for_no_script_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: bytes, said: str
) -> None:
    """Mutant: a medium that boots nothing by UEFI is made without a word."""
    loader = tmp_path / "ipxe.efi"
    loader.write_bytes(text)
    assert boot.medium(str(loader), str(tmp_path / "boot.iso")) == 0
    told = capsys.readouterr().err
    assert said in told if said else told == ""


def test_a_missing_tool_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    loader = tmp_path / "ipxe.efi"
    loader.write_bytes(b"MZ")
    with pytest.raises(RefusedError, match="mformat is missing; add the packages mtools and xorriso"):
        make_medium(MediumParts(loader), tmp_path / "boot.iso")
    assert medium_image.EFI_NAMES == {"x86_64": "BOOTX64.EFI", "arm64": "BOOTAA64.EFI"}


@pytest.mark.parametrize(
    ("held", "why"),
    [
        (b"", "has 0 bytes"),
        (b"\0" * 4096, "has no room"),
        (b"\0" * 512 + ROOM_FOR_SCRIPT[:-1] + b"x" + b"\0" * 512, "has no room"),
        (ROOM_FOR_SCRIPT * 9, "more than 8 times"),
    ],
)
def test_a_file_without_a_whole_room_for_a_script_is_refused(tmp_path: Path, held: bytes, why: str) -> None:
    """Mutant: a room that the file system has cut in two is written over as if it were whole."""
    file = tmp_path / "b.iso"
    file.write_bytes(held)
    with pytest.raises(NoTemplateError, match=why):
        template_of(file)


def test_a_script_that_is_too_long_is_refused() -> None:
    assert len(script_of("#" * ROOM)) == ROOM
    with pytest.raises(NoTemplateError, match=f"keeps {ROOM} bytes"):
        script_of("#" * (ROOM + 1))
