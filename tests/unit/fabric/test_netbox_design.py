"""A design from NetBox's cables, read by pynetbox from a server that answers as its REST API does."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from hostler.cli.exit_codes import ExitCode
from hostler.core.fabric.design import Design
from hostler.core.fabric.design_csv import render_csv
from hostler.core.fabric.netbox_design import design_of
from hostler.core.state.input_problems import InvalidInputError
from tests.cli_api import hostler
from tests.fabrics import a_fabric


def pages_of(design: Design) -> dict[str, list[dict[str, Any]]]:
    """Returns NetBox's answers about it: numbers of devices and interfaces are its own."""
    numbers = {name: number for number, name in enumerate(design.devices, start=1)}
    devices = [
        {
            "id": numbers[one.name],
            "name": one.name,
            "rack": {"id": 1, "name": one.rack} if one.rack else None,
            "position": float(one.unit) if one.unit else None,
            "device_type": {"id": 1, "model": one.model},
        }
        for one in design.devices.values()
    ]
    cables = []
    for number, cable in enumerate(design.cables, start=1):
        ends = {
            f"{side}_terminations": [
                {
                    "object_type": "dcim.interface",
                    "object_id": number,
                    "object": {
                        "id": number,
                        "device": {"id": numbers[port.device], "name": port.device},
                        "name": port.port,
                    },
                }
            ]
            for side, port in (("a", cable.a), ("b", cable.z))
        }
        cables.append({"id": number, "status": {"value": "connected", "label": "Connected"}, **ends})
    return {"/api/dcim/cables/": cables, "/api/dcim/devices/": devices}


@contextmanager
def netbox(pages: dict[str, list[dict[str, Any]]], status: int = 200) -> Iterator[str]:
    """Server's address; it answers in pages of 50, and the token's bearer only."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            split = urlsplit(self.path)
            rows = pages.get(split.path, [])
            start = int(parse_qs(split.query).get("offset", ["0"])[0])
            here = f"http://{self.headers['Host']}{split.path}"
            more = f"{here}?offset={start + 50}&limit=50" if start + 50 < len(rows) else None
            known = self.headers.get("Authorization") == "Token secret" and ("site=hall" in self.path or start > 0)
            body = {"count": len(rows), "next": more, "previous": None, "results": rows[start : start + 50]}
            data = json.dumps(body).encode() if status == 200 else b"<html>busy</html>"
            self.send_response(status if known else 403)
            self.send_header("Content-Type", "application/json")
            self.send_header("API-Version", "4.1")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running = threading.Thread(target=server.serve_forever)
    running.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        running.join()


def converted(folder: Path, url: str) -> int:
    (folder / "token").write_text("secret\n")
    return hostler(
        "fabric", "convert", url, "--from", "netbox", "--site", "hall", "--token-file", str(folder / "token")
    )


def test_netboxs_cables_are_the_design(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    design = a_fabric().design
    with netbox(pages_of(design)) as url:
        assert converted(tmp_path, url) == ExitCode.ok
    assert capsys.readouterr().out == render_csv(design).replace(",4xHDR", ",")


def test_a_netbox_that_refuses_or_breaks_down_gives_no_design(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with netbox({}, status=500) as url:
        assert converted(tmp_path, url) != ExitCode.ok
    assert "500 Internal Server Error" in capsys.readouterr().err


def end(device: str, port: str, kind: str = "dcim.interface") -> list[dict[str, Any]]:
    return [{"object_type": kind, "object": {"device": {"name": device}, "name": port}}]


def test_planned_cables_and_power_cords_are_none_of_the_design() -> None:
    planned = {
        "id": 1,
        "status": {"value": "planned"},
        "a_terminations": end("a", "1"),
        "b_terminations": end("b", "1"),
    }
    power = {
        "id": 2,
        "status": {"value": "connected"},
        "a_terminations": end("a", "psu", "dcim.powerport"),
        "b_terminations": end("b", "1", "dcim.poweroutlet"),
    }
    assert design_of([planned, power], []).cables == ()


@pytest.mark.parametrize(
    ("cables", "said"),
    [
        ([(end("a", "mlx5_0") * 2, end("b", "1"))], "several terminations"),
        ([([], end("b", "1"))], "several terminations"),
        ([(end("a", "mlx5_0"), end("a", "mlx5_0"))], "to itself"),
        ([(end("a", "mlx5_0"), end("b", "1")), (end("a", "mlx5_0"), end("b", "2"))], "is in the cable of"),
        ([(end("", "mlx5_0"), end("b", "1"))], "a_node ''"),
        ([(end("a", "Ethernet 1"), end("b", "1"))], "a_port 'Ethernet 1'"),
        ([(end("a", "mlx5_0"), end("b", "0"))], "port 0"),
    ],
    ids=["two at one end", "none at one end", "to itself", "twice", "no device", "a blank in a port", "port 0"],
)
def test_a_cable_that_is_wrong_is_told_by_its_id(cables: list[Any], said: str) -> None:
    rows = [
        {"id": number, "status": {"value": "connected"}, "a_terminations": a, "b_terminations": z}
        for number, (a, z) in enumerate(cables, start=41)
    ]
    with pytest.raises(InvalidInputError, match=said) as caught:
        design_of(rows, [])
    assert f"netbox cable:{40 + len(cables)}" in str(caught.value)
