"""Folding of the audit log: each sender's lines are its own, whatever the others send."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.journal.audit_log import KEPT, AuditEntry
from hostler.server import audit_folding
from hostler.server.audit_folding import ACTS, REFUSALS, SENDERS_MOST, AuditFolds, beginnings

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
END = datetime.max.replace(tzinfo=UTC)
REFUSED = AuditEntry(
    chain="refusals", at=NOW, last=NOW, person="ann", role="operator", token="aaaaaaaaaaaa", address="10.0.0.9",
    method="POST", route="/v1/nodes/{node_id}/{verb}", verb="drain", target="n1", status=409, outcome="refused",
    request="r1", controller="c1",
)  # fmt: skip
FLOODS: dict[str, Callable[[int], dict[str, Any]]] = {
    "targets": lambda n: {"target": f"x{n}"},
    "verbs": lambda n: {"verb": f"v{n}"},
    "addresses": lambda n: {"address": f"10.{n // 65536}.{n // 256 % 256}.{n % 256}"},
    "statuses": lambda n: {"status": 400 + n % 20, "target": f"x{n}"},
    "a person's other token": lambda n: {"token": "bbbbbbbbbbbb", "target": f"x{n}"},
    "strangers": lambda n: {"person": "", "role": "", "token": f"{n:012x}", "address": f"2001:db8:{n:x}::1"},
    "a stranger with ann's token id": lambda n: {"person": "", "role": "", "target": f"x{n}"},
    "an agent": lambda n: {"person": "agent-n1", "role": "agent", "token": "cccccccccccc", "target": f"x{n}"},
    "many agents": lambda n: {"person": f"agent-n{n}", "role": "agent", "token": f"{n:012x}"},
}


def flood(kind: str, number: int = 3_000) -> Iterator[AuditEntry]:
    sender = replace(REFUSED, person="eve", token="eeeeeeeeeeee")
    return (replace(sender, **FLOODS[kind](n), at=NOW + timedelta(milliseconds=n)) for n in range(number))


@pytest.mark.parametrize("chain", ["acts", "refusals"])
@pytest.mark.parametrize("kind", FLOODS)
def test_one_senders_flood_folds_no_line_of_another(kind: str, chain: Any) -> None:
    """Mutants: one allowance for all who are recognised (as it was); a rest that is not its sender's."""
    folds = AuditFolds()
    others = [
        replace(REFUSED, chain=chain, token=f"{n:012d}", person=f"p{n}", target=f"n{n}", at=NOW + timedelta(seconds=4))
        for n in range(100)
    ]
    entries = [*(replace(one, chain=chain) for one in flood(kind)), *others]
    for one in entries:
        folds.add(one)
    written = folds.take(END, END)
    assert sum(one.count for one in written) == len(entries), "nothing is lost"
    told = [one for one in written if (one.token, one.person) in {(other.token, other.person) for other in others}]
    assert [(one.target, one.count, one.address) for one in told] == [(one.target, 1, "10.0.0.9") for one in others]
    bounds = {"acts": ACTS, "refusals": REFUSALS}[chain]
    assert len(written) - len(told) <= max(a.together.burst for a in bounds.values()) + 2


def test_a_rest_keeps_what_its_lines_share() -> None:
    """Mutant: the rest of a token says nothing at all. Token, person, address and verb stay, targets are several."""
    folds = AuditFolds()
    for one in flood("targets"):
        folds.add(one)
    (rest,) = (one for one in folds.take(END, END) if one.count > 1)
    assert (rest.person, rest.token, rest.address, rest.verb, rest.status) == (
        "eve", "eeeeeeeeeeee", "10.0.0.9", "drain", 409)  # fmt: skip
    assert (rest.target, rest.request, rest.count) == ("several", "", 3_000 - REFUSALS["person"].each.burst)


def test_a_flood_of_one_token_leaves_the_same_persons_other_token_its_lines() -> None:
    folds = AuditFolds()
    for one in flood("targets"):
        folds.add(one)
    folds.add(replace(REFUSED, person="eve", token="ffffffffffff", target="own"))
    assert [one.target for one in folds.take(END, END) if one.token == "ffffffffffff"] == ["own"]


def test_a_stranger_with_many_tokens_and_addresses_of_one_network_is_one() -> None:
    """Mutants: a stranger by its token, which it writes itself; each address of a /64 a sender."""
    folds = AuditFolds()
    for n in range(1_000):
        stranger = replace(REFUSED, person="", role="", token=f"{n:012x}", address=f"2001:db8::{n:x}", target=f"x{n}")
        folds.add(stranger)
    folds.add(replace(REFUSED, person="", role="", token="", address="192.0.2.7", target="other"))
    written = folds.take(END, END)
    assert [one.target for one in written if one.address == "192.0.2.7"] == ["other"]
    assert len(written) == REFUSALS["stranger"].each.burst + 2


def test_years_of_a_flood_push_out_nobodys_lines() -> None:
    """Mutant: an allowance by the minute alone: 50 a minute are 2.1 million in 30 days, and 200,000 are kept."""
    for chain, bounds in (("refusals", REFUSALS), ("acts", ACTS)):
        kept = KEPT[chain]  # type: ignore[index]
        rests = kept.days * 24
        for kind, allowances in bounds.items():
            lines = allowances.together.burst + allowances.together.a_day * kept.days + 2 * rests
            assert lines < 0.8 * kept.most, (chain, kind)


def test_an_allowance_grows_back_with_the_entries_time_and_never_beyond_its_burst(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folds, burst = AuditFolds(), REFUSALS["person"].each.burst
    assert sum(folds.admit(replace(REFUSED, target=f"x{n}")) for n in range(2 * burst)) == burst
    later = NOW + timedelta(hours=2.4)  # a tenth of a day
    grown = sum(folds.admit(replace(REFUSED, at=later)) for _ in range(2 * burst))
    assert grown == REFUSALS["person"].each.a_day // 10
    assert not folds.admit(replace(REFUSED, at=NOW)), "a clock that goes back gives nothing"
    monkeypatch.setattr(audit_folding, "SENDERS_MOST", 10)
    for n in range(100):
        folds.admit(replace(REFUSED, token=f"{n}", person=f"{n}"))
    assert len(folds._levels) <= 10 < SENDERS_MOST  # noqa: SLF001 - what is in memory


def test_lines_and_rests_have_each_their_time() -> None:
    folds = AuditFolds()
    for one in flood("targets"):
        folds.add(one)
    minute = NOW + timedelta(seconds=70)
    first = folds.take(*beginnings(minute, 60.0, 60))
    assert {one.count for one in first} == {1}
    (rest,) = folds.take(*beginnings(NOW + timedelta(hours=1, seconds=10), 60.0, 60))
    assert rest.count > 1
    assert folds.take(END, END) == []
