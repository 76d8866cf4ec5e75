"""Writes the files of a bundle of evidence as a zip, the same bytes for the same evidence."""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest moment that a zip can hold: when a file was written tells nothing here."""


def zipped(files: Mapping[str, str | bytes], made: str, sha256: Mapping[str, str]) -> bytes:
    """The zip: the files in the order of their names, and `manifest.json` with the SHA-256 of each."""
    digests = json.dumps({"made": made, "sha256": dict(sha256)}, indent=2, sort_keys=True)
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, content in sorted({**files, "manifest.json": f"{digests}\n"}.items()):
            entry = zipfile.ZipInfo(Path(name).name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            bundle.writestr(entry, content)
    return held.getvalue()
