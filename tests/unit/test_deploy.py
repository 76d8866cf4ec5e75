"""The units of agent and controller: systemd reads them, and the programs take their arguments."""

import subprocess
from pathlib import Path
from shutil import which

import pytest

from hostler.agent import main
from hostler.cli.main import build

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


def test_the_controllers_unit_is_one_that_systemd_can_read_and_serve_takes_its_arguments(tmp_path: Path) -> None:
    """Mutants: a setting that systemd does not know; an option of `serve` that there is no more."""
    text = (Path(__file__).parents[2] / "deploy/systemd/hostler.service").read_text()
    (command,) = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    words = command.removeprefix("ExecStart=").replace("$HOSTLER_SERVE_OPTIONS", "--listen 127.0.0.1:8440").split()
    assert words[0] == "/usr/bin/hostler"
    build().parse_args(words[1:], exit_on_error=False, print_error=False)
    if which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze: apt-get install systemd")
    copy = tmp_path / "hostler.service"
    copy.write_text(text.replace("/usr/bin/hostler", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "hostler.service" not in done.stderr, done.stderr
