"""Builds the body of a multipart push of firmware (Redfish `MultipartHttpPushUri`, DSP0266)."""

import hashlib
import re

import msgspec

_NOT_A_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]")


def update_body(targets: list[str], image: bytes, name: str) -> tuple[bytes, str]:
    """The body and its boundary: a part of JSON parameters, then the file. Never chunked: some BMCs take none."""
    boundary = f"hostler-{hashlib.sha256(image).hexdigest()[:32]}"
    parameters = msgspec.json.encode({"Targets": targets})
    file_name = _NOT_A_FILE_NAME.sub("_", name)[:100] or "image.bin"
    head = (
        f"--{boundary}\r\n"
        'Content-Disposition: form-data; name="UpdateParameters"\r\n'
        "Content-Type: application/json\r\n\r\n"
    ).encode()
    file_head = (
        f"\r\n--{boundary}\r\n"
        f'Content-Disposition: form-data; name="UpdateFile"; filename="{file_name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode()
    return b"".join((head, parameters, file_head, image, f"\r\n--{boundary}--\r\n".encode())), boundary
