"""Attacks of a BMC on the controller: pages without end, depth, drips, other places, another certificate."""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from hostler.polling.bmc_readings import LOG_S
from hostler.polling.bmc_schedule import Pace, share
from hostler.server.tokens import Grant, Role
from hostler.sim.bmc.tls_certificates import self_signed
from tests.adversary.attacked import PATIENCE_S, Served, Witness, attacked, tolerable_s
from tests.adversary.evil_bmc import ENTRIES, SYSTEM, EvilBmc, Says, but, deep, endless, evil, sound
from tests.adversary.test_one_token import documents

PERIOD_S = Pace().period_s
USER = {"username": "hostler", "password": "secret"}
TOO_LARGE, REFUSED = "bmc.response_too_large", "bmc.refused"


def soon(name: str) -> str:
    """A node of this name and a number whose BMC, and its event log, are looked at within seconds of its coming."""
    names = (f"{name}{number}" for number in count())
    return next(n for n in names if share(n) * PERIOD_S < 2.0 and share(f"{n}/event_log") * LOG_S < 4.0)


class Fleet:
    """Nodes with these BMCs, in service."""

    def __init__(self, served: Served, **bmcs: EvilBmc) -> None:
        self._served = served
        self._token = served.token(Grant("ann", Role.operator))
        self.nodes = {name: soon(name) for name in bmcs}
        specs = [
            {"id": node, "sku": "this", "pool": "train", "serial": f"S-{name}", "bmc": f"{bmcs[name].origin}{SYSTEM}"}
            for name, node in self.nodes.items()
        ]
        for spec in specs:
            if "systems" in spec["id"]:
                spec["bmc"] = spec["bmc"].removesuffix(SYSTEM)
        status, answer = served.ask("POST", "/v1/adopt", self._token, {"nodes": specs, "reason": "test"})
        assert status == 200, answer

    def conditions(self, name: str) -> list[dict[str, Any]]:
        status, answer = self._served.ask("GET", f"/v1/nodes/{self.nodes[name]}/conditions", self._token)
        assert status == 200, answer
        return list(answer["items"])

    def shows(self, name: str, kind: str) -> bool:
        return any(one["type"] == kind for one in self.conditions(name))


def until(holds: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, f"in vain for: {what}"
        time.sleep(0.1)


def entered(folder: Path, **access: dict[str, str]) -> list[str]:
    """Writes the files that `serve` is given; `bmc.json` names loopback and these origins."""
    data = folder / "data"
    data.mkdir(mode=0o700)
    (data / "bmc.json").touch(mode=0o600)
    (data / "bmc.json").write_text(json.dumps({"http://127.0.0.0/8": USER, **access}))
    return documents(folder)


@pytest.mark.nightly("BMCs are asked for half a minute")
async def test_bmcs_without_end_cost_their_bounds_and_are_asked_seldom(tmp_path: Path) -> None:
    """Four whose list of systems has no end, 50 pages and more of 8 MiB and 4,096 members each, and one endless log.

    Mutants: a look's bytes or members are not counted; an endless log keeps its BMC from being looked at.
    """

    def attack(served: Served) -> None:
        fleet = Fleet(served, **bmcs)
        for name in bmcs:
            if name != "good":
                until(partial(fleet.shows, name, TOO_LARGE), f"{TOO_LARGE} on {name}")
        began = {name: len(bmc.asked) for name, bmc in bmcs.items()}
        at = time.monotonic()
        until(lambda: all(len(bmcs[name].asked) > began[name] for name in ("log", "good")), "more looks at those two")
        asked = {name: len(bmc.asked) - began[name] for name, bmc in bmcs.items()}
        told = {name: [one["part"] for one in fleet.conditions(name)] for name in bmcs}
        sys.stdout.write(f"\nrequests in {time.monotonic() - at:.0f} s: {asked}\n")
        assert told == {"log": ["event_log"], "good": [], **{f"systems{n}": ["system"] for n in range(4)}}
        for n in range(4):
            assert asked[f"systems{n}"] <= 12, "two looks at most, each of five pages until the members are too many"

    with ExitStack() as stack:
        page = endless("/redfish/v1/Systems")
        bmcs = {
            f"systems{n}": stack.enter_context(evil(but(sound(f"S-systems{n}"), "/redfish/v1/Systems", page)))
            for n in range(4)
        }
        bmcs["log"] = stack.enter_context(evil(but(sound("S-log"), ENTRIES, endless(ENTRIES))))
        bmcs["good"] = stack.enter_context(evil(sound("S-good")))
        async with attacked(tmp_path, *entered(tmp_path)) as served:
            with Witness(served) as witness:
                await asyncio.to_thread(attack, served)
            witness.told("four BMCs whose systems have no end, and one endless log")
            assert witness.grown_mib < 256, witness
            assert witness.longest_s < tolerable_s(1.0), witness
            assert not witness.refused, witness


async def test_bmcs_that_lead_elsewhere_drip_or_change_their_certificate_get_nothing(tmp_path: Path) -> None:
    """Redirects to another host, an answer that never ends, depth, and a certificate that is not the pinned one.

    Mutants: redirects are followed; the fingerprint is compared after the request has gone; a drip holds up others.
    """
    first, second = self_signed(datetime.now(UTC)), self_signed(datetime.now(UTC))

    def attack(served: Served) -> None:
        fleet = Fleet(served, **bmcs)
        until(lambda: bmcs["pinned"].asked, "a look at the pinned BMC")
        assert any(given for _, given in bmcs["pinned"].asked), "while it is itself it is told the password"
        port = bmcs["pinned"].server_port
        bmcs["pinned"].stop()
        with evil(sound("S-pinned"), port, second.server_context()) as mismatched:
            until(lambda: fleet.shows("pinned", REFUSED), f"{REFUSED} of another certificate")
            assert mismatched.came, "it was met"
            assert not mismatched.asked, "and was sent nothing"
        until(lambda: len(bmcs["good"].asked) > 6, "looks at the BMC that behaves")
        for name in ("redirects", "drips", "deep"):
            assert bmcs[name].asked, name
            assert not fleet.shows(name, TOO_LARGE), name
        assert not elsewhere.came, "nobody was led there"

    with ExitStack() as stack:
        elsewhere = stack.enter_context(evil(sound("S-redirects")))
        away = Says(location=f"{elsewhere.origin}{SYSTEM}")
        bmcs = {
            "redirects": stack.enter_context(evil(but(sound("S-redirects"), SYSTEM, lambda _: away))),
            "drips": stack.enter_context(evil(but(sound("S-drips"), SYSTEM, lambda _: Says(drips=True)))),
            "deep": stack.enter_context(evil(but(sound("S-deep"), SYSTEM, lambda _: deep()))),
            "good": stack.enter_context(evil(sound("S-good"))),
            "pinned": stack.enter_context(evil(sound("S-pinned"), 0, first.server_context())),
        }
        pinned = {bmcs["pinned"].origin: {**USER, "fingerprint": first.fingerprint}}
        async with attacked(tmp_path, *entered(tmp_path, **pinned)) as served:
            with Witness(served) as witness:
                await asyncio.to_thread(attack, served)
            witness.told("BMCs that redirect, drip, are deep, change their certificate")
            assert witness.grown_mib < 64, witness
            assert witness.longest_s < tolerable_s(), witness
            assert not witness.refused, witness
