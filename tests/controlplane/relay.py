"""Lets a network namespace reach one port of this host's loopback, at the same address: `relay.py PID PORT`.

The namespace is that of process PID. Writes one line once it listens there.
"""

import asyncio
import contextlib
import ctypes
import os
import socket
import sys

HOME = "127.0.0.1"
CLONE_NEWNET = 0x40000000
CHUNK = 65_536


def enter(path: str) -> None:
    """Have this thread in another network namespace. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "rb") as namespace:  # noqa: PTH123 - no path of a file
        if libc.setns(namespace.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)


def listening(pid: int, port: int) -> socket.socket:
    """A socket of the other namespace; connections that this process opens stay this host's."""
    with contextlib.ExitStack() as back:
        enter(f"/proc/{pid}/ns/net")
        back.callback(enter, f"/proc/{os.getppid()}/ns/net")
        return socket.create_server((HOME, port))


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until one side ends or breaks off."""
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
    writer.close()


async def relay(pid: int, port: int) -> None:
    """Serve until killed."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection(HOME, port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pass_on(reader, there[1]), pass_on(there[0], writer))

    server = await asyncio.start_server(serve, sock=listening(pid, port))
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(relay(int(sys.argv[1]), int(sys.argv[2])))
