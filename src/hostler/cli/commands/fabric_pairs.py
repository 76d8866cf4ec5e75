"""`hostler fabric enter-pairs`: results of a check between nodes, from a file."""

import csv
import math
from typing import Annotated, Any

from cyclopts import Parameter

from hostler.cli.command_errors import unusable
from hostler.cli.exit_codes import ExitCode
from hostler.cli.input_files import read_text
from hostler.cli.list_commands import describe
from hostler.cli.options import CONNECT, SHOW_ONCE, Connect, FabricName, ShowOnce
from hostler.cli.table_columns import FABRICS

COLUMNS = ("a", "z", "gbps")


def enter_pairs(
    fabric: FabricName,
    results: Annotated[
        str, Parameter(help="A CSV with columns a, z and gbps: gpu-0001:mlx5_0,gpu-0002:mlx5_0,371.2; `-` reads stdin.")
    ],
    *,
    age: Annotated[float, Parameter(help="Seconds since it was measured.")] = 0.0,
    show: ShowOnce = SHOW_ONCE,
    connect: Connect = CONNECT,
) -> int:
    """Enter what a check between nodes reached from port to port: it judges links and switches, and no node."""
    told = _rows(read_text(results), results)
    answer = connect.client().post(FABRICS.one(fabric, "/pairs"), {"results": told, "age_s": age})
    describe(answer, fabric, show.output)
    return ExitCode.ok


def _rows(text: str, name: str) -> list[dict[str, Any]]:
    """Rows of the file, all or none; the line that is wrong is told."""
    lines = csv.reader(text.removeprefix("\ufeff").splitlines(), strict=True)
    instead = "write a head a,z,gbps and a line for each result, as gpu-0001:mlx5_0,gpu-0002:mlx5_0,371.2"
    told: list[dict[str, Any]] = []
    try:
        for row in lines:
            if lines.line_num == 1 and tuple(word.strip() for word in row) == COLUMNS:
                continue
            if not row:
                continue
            a, z, reached = (word.strip() for word in row)
            gbps = float(reached)
            if lines.line_num == 1 or not math.isfinite(gbps):
                raise unusable(f"{name}, line {lines.line_num}: {','.join(row)[:80]!r}", instead)
            told.append({"a": a, "z": z, "gbps": gbps})
    except (csv.Error, ValueError) as error:
        raise unusable(f"{name}, line {lines.line_num}: {error}", instead) from error
    if not told:
        raise unusable(f"{name}: no result", instead)
    return told
