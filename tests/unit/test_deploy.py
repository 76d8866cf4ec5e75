"""The unit that installs the agent: systemd reads it, and the agent takes its arguments."""

import subprocess
from pathlib import Path
from shutil import which

import pytest

from hostler.agent import main

UNIT = Path(main.__file__).with_name("hostler-agent.service")


def test_the_unit_is_one_that_systemd_can_read(tmp_path: Path) -> None:
    if which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze: apt-get install systemd")
    text = UNIT.read_text()
    copy = tmp_path / UNIT.name
    copy.write_text(text.replace("/opt/hostler/bin/python", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (command,) = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    words = (
        command.replace("${HOSTLER_SERVER}", "https://a").replace("$HOSTLER_AGENT_OPTIONS", "--units a.service").split()
    )
    settings = main.settings_from(words[words.index(main.__name__) + 1 :])
    assert settings
    assert (settings.server, settings.units) == ("https://a", ("a.service",))
