"""The committed reference is what the code says today: `make docs` renews it."""

import subprocess
import sys
from pathlib import Path

REFERENCE = Path(__file__).parents[2] / "docs/reference"


def test_the_committed_reference_is_what_the_code_says(tmp_path: Path) -> None:
    program = str(Path(sys.executable).with_name("hostler"))
    subprocess.run([program, "docs", "generate", "--out", str(tmp_path)], check=True, capture_output=True)
    written = {page.name: page.read_text() for page in sorted(REFERENCE.iterdir())}
    fresh = {page.name: page.read_text() for page in sorted(tmp_path.iterdir())}
    assert written.keys() == fresh.keys()
    assert [name for name in fresh if fresh[name] != written[name]] == [], "run `make docs` and commit what it writes"
