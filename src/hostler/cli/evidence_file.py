"""Writes the evidence of a node as a zip, the same bytes for the same evidence."""

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hostler.cli.command_errors import unusable

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest moment that a zip can hold: when a file was written tells nothing here."""


def write(found: Mapping[str, Any], to: str) -> Path:
    """Write the bundle, readable by its owner alone; an existing file stays. Raises CommandError."""
    node = "".join(c if c.isalnum() or c in "-_." else "_" for c in str(found["node"]))
    path = Path(to or f"{node}-evidence.zip")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise unusable(f"{path} cannot be written: {error.strerror}", "name another file with --to") from error
    with os.fdopen(descriptor, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bundle:
        digests = json.dumps({"made": found["made"], "sha256": found["sha256"]}, indent=2, sort_keys=True)
        for name, text in sorted({**found["files"], "manifest.json": f"{digests}\n"}.items()):
            entry = zipfile.ZipInfo(Path(name).name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            bundle.writestr(entry, text)
    return path
