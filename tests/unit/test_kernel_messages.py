"""The pipe into emulated kernels: lines in pieces, of several writers, for nobody, and no text at all."""

import asyncio
from pathlib import Path

from hostler.sim.emulated.kernel_messages import KernelMessages


async def heard(folder: Path, *pieces: bytes) -> list[tuple[str, str]]:
    """The messages that came of what was written, in turn."""
    said: list[tuple[str, str]] = []

    def say(node: str, message: str) -> None:
        if node != "n1":
            raise KeyError(node)
        said.append((node, message))

    messages = KernelMessages(folder / "pipe", say)
    messages.open()
    try:
        for piece in pieces:
            with (folder / "pipe").open("wb", buffering=0) as pipe:
                pipe.write(piece)
            await asyncio.sleep(0.01)
    finally:
        messages.close()
    assert not (folder / "pipe").exists()
    return said


async def test_a_line_is_what_the_kernel_of_its_node_logs(tmp_path: Path) -> None:
    assert await heard(tmp_path, b"n1 NVRM: Xid 79\nn1 EXT4-fs er", b"ror\n") == [
        ("n1", "NVRM: Xid 79"),
        ("n1", "EXT4-fs error"),
    ]


async def test_a_line_for_nobody_is_left_and_the_next_is_heard(tmp_path: Path) -> None:
    assert await heard(tmp_path, b"n9 lost\n\n", b"\xff\xff\n", b"n1 found\n") == [("n1", "found")]


async def test_a_pipe_that_was_left_behind_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "pipe").write_text("a file of an earlier run")
    assert await heard(tmp_path, b"n1 found\n") == [("n1", "found")]
