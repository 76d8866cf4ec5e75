"""`hostler fabric` on files: a rule makes a design, a design is checked, a discovery is judged against it."""

import json
from pathlib import Path

import pytest

from hostler.cli.exit_codes import ExitCode
from hostler.core.fabric.design_csv import render_csv
from tests.cli_api import hostler
from tests.fabrics import SMALL, Fabric, a_fabric, printed, swap_at_host

RULE = """\
hosts: 12
adapters: [mlx5_0, mlx5_1, mlx5_2, mlx5_3]
unit: 6
radix: 16
spines: 4
rate: 4xHDR
host_model: x
"""


def write(folder: Path, fabric: Fabric) -> tuple[str, str]:
    design, page = folder / "design.csv", folder / "found.txt"
    design.write_text(render_csv(fabric.design))
    page.write_text(printed(fabric))
    return str(design), str(page)


def test_a_rule_makes_the_design_that_is_then_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rule.yaml").write_text(RULE)
    assert hostler("fabric", "generate", str(tmp_path / "rule.yaml")) == ExitCode.ok
    design = tmp_path / "design.csv"
    design.write_text(capsys.readouterr().out)
    assert design.read_text() == render_csv(a_fabric(rule=SMALL).design)
    assert hostler("fabric", "check", str(design)) == ExitCode.ok
    assert capsys.readouterr().out == "112 cables between 24 devices in 4 racks; nothing is wrong\n"


def test_a_network_as_designed_ends_well_and_one_that_differs_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fabric = a_fabric(3)
    design, page = write(tmp_path, fabric)
    assert hostler("fabric", "compare", design, "--discovery", page) == ExitCode.ok
    assert "the network lies as designed" in capsys.readouterr().err

    swap_at_host(fabric)
    write(tmp_path, fabric)
    assert hostler("fabric", "compare", design, "--discovery", page) == ExitCode.unsound
    said = capsys.readouterr()
    assert "Exchange the plugs in r01 U9 gpu-0002 port mlx5_" in said.out
    assert "1 findings; 112 links found for 112 cables" in said.err
    assert hostler("fabric", "compare", design, "--discovery", page, "-o", "json") == ExitCode.unsound
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert (item["kind"], item["grade"], len(item["ports"])) == ("swapped", "high", 4)
    assert hostler("fabric", "compare", design, "--discovery", page, "-o", "ticket") == ExitCode.unsound
    assert "Then close the ticket: the fabric is validated again" in capsys.readouterr().out


def test_a_page_that_was_cut_off_concludes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    design, page = write(tmp_path, a_fabric())
    Path(page).write_text(Path(page).read_text()[:-300])
    assert hostler("fabric", "compare", design, "--discovery", page) == ExitCode.unavailable
    said = capsys.readouterr()
    assert said.out == ""
    assert "nothing is concluded" in said.err


def test_two_designs_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    design, _ = write(tmp_path, a_fabric())
    lines = Path(design).read_text().splitlines()
    (tmp_path / "less.csv").write_text("\n".join(lines[:-1]))
    assert hostler("fabric", "diff", design, str(tmp_path / "less.csv")) == ExitCode.ok
    said = capsys.readouterr()
    assert "cable goes" in said.out
    assert said.err.startswith("cable goes: 1; at 0 hosts and 2 switches in 1 racks")
    assert hostler("fabric", "diff", design, design) == ExitCode.ok
    assert "both designs are the same" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "text", "said"),
    [
        ("check", "a_node,a_port\n", "no column z_node, z_port"),
        ("generate", "hosts: many\n", "Expected `int`, got `str` - at `$.hosts`"),
        ("generate", "hosts: 8\nleafs: 3\n", "unknown field `leafs`"),
        ("generate", "hosts: [", "file:1: expected the node content"),
        ("generate", "hosts: 100000\n", "take 1 to 65,536"),
    ],
)
def test_a_wrong_file_is_refused_with_what_instead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, text: str, said: str
) -> None:
    (tmp_path / "file").write_text(text)
    assert hostler("fabric", command, str(tmp_path / "file")) == ExitCode.usage
    assert said in capsys.readouterr().err
