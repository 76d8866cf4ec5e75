"""Reads a multipart push of firmware as an emulated BMC does, with the parser of the standard library."""

from collections.abc import Mapping
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import HTTP

import msgspec

from hostler.sim.bmc.emulated_machine import BmcRefusalError


class _Parameters(msgspec.Struct, rename="pascal"):
    targets: list[str] = []


def read(headers: Mapping[str, str], body: bytes) -> tuple[list[str], bytes]:
    """The targets and the image. Raises BmcRefusalError (400) for anything that is not both."""
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    parser = BytesParser(_class=EmailMessage, policy=HTTP)
    message = parser.parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
    parts = {str(part.get_param("name", "", "content-disposition")): part for part in message.iter_parts()}
    if parts.keys() != {"UpdateParameters", "UpdateFile"}:
        raise BmcRefusalError(400, "The parts UpdateParameters and UpdateFile are required.")
    try:
        found = msgspec.json.decode(_bytes(parts["UpdateParameters"]), type=_Parameters)
    except msgspec.DecodeError as error:
        raise BmcRefusalError(400, "The part UpdateParameters is malformed.") from error
    return found.targets, _bytes(parts["UpdateFile"])


def _bytes(part: object) -> bytes:
    content = part.get_payload(decode=True) if isinstance(part, EmailMessage) else b""
    return content if isinstance(content, bytes) else b""
