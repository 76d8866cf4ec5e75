"""Builds the body of a file upload by form (multipart/form-data, RFC 7578) with one part, `file`."""

import hashlib


def file_body(name: str, media_type: str, data: bytes) -> tuple[bytes, str]:
    """The body and its boundary. `name` has no quotes, line ends or non-ASCII characters in it."""
    boundary = f"hostler-{hashlib.sha256(data).hexdigest()[:32]}"
    head = (
        f"--{boundary}\r\n"
        f'Content-Disposition: form-data; name="file"; filename="{name}"\r\n'
        f"Content-Type: {media_type}\r\n\r\n"
    ).encode()
    return b"".join((head, data, f"\r\n--{boundary}--\r\n".encode())), boundary
