"""The console's files as they are delivered: nothing inline, nothing from elsewhere, others' code as it is listed."""

import hashlib
import re
from pathlib import Path

CONSOLE = Path(__file__).parents[2] / "src/hostler/server/console"


def test_the_vendored_files_are_the_ones_that_are_named() -> None:
    listed = (CONSOLE / "vendor/VENDOR.md").read_text()
    for file in sorted(one for one in (CONSOLE / "vendor").iterdir() if one.suffix in (".js", ".css")):
        assert hashlib.sha256(file.read_bytes()).hexdigest() in listed, file.name


def test_no_page_runs_inline_scripts_or_fetches_from_elsewhere() -> None:
    for file in [*CONSOLE.glob("*.js"), *CONSOLE.glob("*.html"), *CONSOLE.glob("*.css")]:
        text = file.read_text()
        assert not re.search(r"https?://", text), file.name
        assert "innerHTML" not in text
        assert not re.search(r"<script(?![^>]*src=)", text), file.name
