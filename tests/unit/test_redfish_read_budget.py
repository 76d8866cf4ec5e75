"""A BMC that shows without end costs one look's budget and no more."""

import msgspec
import pytest

from hostler.drivers.redfish import read_budget
from hostler.drivers.redfish.client import RedfishClient
from hostler.drivers.redfish.http_exchange import Body, HttpResponse
from hostler.ports import ExcessError


class Endless:
    """A collection whose every page has `members` and leads to another page."""

    def __init__(self, members: int, filling: object = "") -> None:
        self.asked = 0
        self._page = [{"@odata.id": f"/redfish/v1/Systems/{n}", "x": filling} for n in range(members)]

    async def __call__(self, _method: str, path: str, _body: Body, _headers: dict[str, str]) -> HttpResponse:
        self.asked += 1
        following = f"/redfish/v1/Systems?page={self.asked}"
        if path == "/redfish/v1/":
            return HttpResponse(200, msgspec.json.encode({"Systems": {"@odata.id": "/redfish/v1/Systems"}}))
        return HttpResponse(200, msgspec.json.encode({"Members": self._page, "Members@odata.nextLink": following}))


@pytest.mark.parametrize(
    ("bmc", "said", "most"),
    [
        (Endless(4_096), "more than 16384 members", 6),
        (Endless(1, "x" * 4 * 1024 * 1024), "more than 32 MiB", 9),
        (Endless(100, [0] * 2_000), "more than 1500000 values", 9),
        (Endless(1, [0] * 400_000), "300000 are read", 1),
    ],
)
async def test_all_pages_together_have_one_budget(bmc: Endless, said: str, most: int) -> None:
    """Mutants: the budget is a page's; the members, the bytes or the values are not counted."""
    client = RedfishClient(bmc, "https://b")
    with pytest.raises(ExcessError, match=said):
        await client.member_paths("/redfish/v1/Systems")
    assert bmc.asked <= most


async def test_the_next_look_has_a_budget_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: what one look has spent is missing at the next."""
    monkeypatch.setattr(read_budget, "LOOK_MEMBERS", 120)
    client = RedfishClient(Endless(2), "https://b")
    for _ in range(3):
        client.begin()
        assert len(await client.member_paths("/redfish/v1/Systems")) == 100
    with pytest.raises(ExcessError, match="more than 120 members"):
        await client.member_paths("/redfish/v1/Systems")
