"""The files that install the agent: what they name exists, and the agent takes their arguments."""

import subprocess
from pathlib import Path
from shutil import which
from typing import Any

import pytest
import yaml

from hostler.agent import main

ROOT = Path(__file__).parents[2]
UNIT = Path(main.__file__).with_name("hostler-agent.service")


@pytest.fixture
def pod() -> Any:
    documents = yaml.safe_load_all((ROOT / "deploy/agent-daemonset.yaml").read_text())
    return next(d for d in documents if d["kind"] == "DaemonSet")["spec"]["template"]["spec"]


def test_the_agent_takes_the_arguments_of_the_daemonset(pod: Any) -> None:
    """Mutant: an option is renamed."""
    (container,) = pod["containers"]
    assert container["command"] == ["python", "-m", main.__name__]
    settings = main.settings_from(container["args"])
    assert settings
    assert not settings.allow_actions
    assert str(settings.state_dir) in {mount["mountPath"] for mount in container["volumeMounts"]}
    assert str(settings.token_file) in {mount["mountPath"] for mount in container["volumeMounts"]}


def test_every_mount_has_its_volume_and_no_secret_holds_everybodys_tokens(pod: Any) -> None:
    (container,) = pod["containers"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert not any("secret" in volume for volume in pod["volumes"])


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
