"""Records the shapes of stored events as the next format, where the classes of events have changed since the last.

`python scripts/event_formats.py` prints what is new and gone since the newest format of `main`; `--raise` writes the
format with its golden journal. A format that `main` has is never changed; one that it has not is written anew, so that
a branch raises once. An event that is new takes a row in `events.INTRODUCED` with the same number.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from hostler.cli.reference import stored_bodies
from hostler.core.state import recorded_bodies

ROOT = Path(__file__).parent.parent
PLACE = "src/hostler/core/state/recorded_bodies.txt"
WRITE_GOLDEN = "from tests.contract.test_journal_golden import write_format; write_format()"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--raise", action="store_true", dest="raises", help="write the next format and its journal")
    parser.add_argument("--base", default="main", help="the branch whose formats are never changed")
    asked = parser.parse_args()
    before = recorded_bodies.parsed(_recorded(asked.base))
    now = stored_bodies.todays()
    differing = stored_bodies.differing(before, now)
    sys.stdout.writelines(f"{line[:200]}\n" for line in differing)
    if not differing or not asked.raises:
        return 1 if differing else 0
    facts = stored_bodies.raised(before, now)
    (ROOT / PLACE).write_text(stored_bodies.written(facts), encoding="utf-8")
    number = recorded_bodies.BodyShapes(facts).newest
    print(f"format {number} is written: give new events a row in events.INTRODUCED, then commit both files")
    subprocess.run([sys.executable, "-c", WRITE_GOLDEN], cwd=ROOT, check=True)
    return 0


def _recorded(base: str) -> str:
    """The file as the base branch has it, else as it stands here."""
    git = shutil.which("git") or "git"
    found = subprocess.run([git, "show", f"{base}:{PLACE}"], cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout if found.returncode == 0 else (ROOT / PLACE).read_text(encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
