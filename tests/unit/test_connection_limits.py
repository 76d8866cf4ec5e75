"""Connections by address and identity: the oldest that asks for nothing gives way, nobody takes another's room."""

import pytest

from hostler.server.connection_limits import ConnectionLimits, ConnectionTable, address_of, limits
from hostler.server.tokens import Grant, Identity, Role

FEW = ConnectionLimits(total=6, strangers=3, agent=2, person=4)


class Client:
    """A connection that notes its end."""

    def __init__(self, address: str, *, answering: bool = False) -> None:
        self.address = address
        self.answering = answering
        self.ended = False

    def end(self) -> None:
        self.ended = True


def an_agent(node: str) -> Identity:
    return Identity(f"token-{node}", Grant(node, Role.agent, node=node))


def test_the_oldest_stranger_of_an_address_gives_way_to_its_newest() -> None:
    """Mutants: the newest is refused; the oldest of all addresses goes."""
    table = ConnectionTable(FEW)
    other = Client("b")
    halves = [Client("a") for _ in range(5)]
    assert table.opened(other)
    assert all(table.opened(one) for one in halves)
    assert [one.ended for one in halves] == [True, True, False, False, False]
    assert not other.ended
    assert (table.strangers, table.refused) == (4, 2)


def test_who_is_answered_does_not_give_way() -> None:
    table = ConnectionTable(FEW)
    busy = [Client("a", answering=True) for _ in range(3)]
    assert all(table.opened(one) for one in busy)
    assert not table.opened(Client("a"))
    assert not any(one.ended for one in busy)


def test_where_all_is_full_the_address_with_most_strangers_gives_one_up() -> None:
    table = ConnectionTable(FEW)
    many, few = [Client("a") for _ in range(3)], [Client("b") for _ in range(2)]
    assert all(table.opened(one) for one in (*few, *many))
    assert all(table.opened(Client(f"c{n}")) for n in range(2))
    assert [one.ended for one in many] == [True, False, False]
    assert not any(one.ended for one in few)


def test_a_recognised_connection_is_its_owners_and_no_strangers() -> None:
    """Mutants: it still counts for its address; it counts twice."""
    table = ConnectionTable(FEW)
    mine = [Client("a") for _ in range(2)]
    for one in mine:
        assert table.opened(one)
        assert table.recognised(one, an_agent("n1"))
        assert table.recognised(one, an_agent("n1"))
    assert (table.strangers, table.known) == (0, 2)
    assert all(table.opened(Client("a")) for _ in range(9))
    assert not any(one.ended for one in mine)
    third = Client("z")
    table.opened(third)
    assert table.recognised(third, an_agent("n1")), "the oldest of its own gives way"
    assert [one.ended for one in mine] == [True, False]


def test_a_connection_that_carries_for_many_counts_for_the_last() -> None:
    table = ConnectionTable(FEW)
    carrier = Client("standby")
    table.opened(carrier)
    for number in range(50):
        assert table.recognised(carrier, an_agent(f"n{number}"))
    assert (table.known, [who.token for who in table.identities()]) == (1, ["token-n49"])


def test_revoked_tokens_lose_their_connections_and_closed_ones_are_forgotten() -> None:
    table = ConnectionTable(FEW)
    one, two, gone = Client("a"), Client("a"), Client("a")
    for client, node in ((one, "n1"), (two, "n2"), (gone, "n1")):
        table.opened(client)
        table.recognised(client, an_agent(node))
    table.closed(gone)
    assert table.end(["token-n1", "token-unknown"]) == 1
    assert (one.ended, two.ended, gone.ended) == (True, False, False)
    for client in (one, two, gone):
        table.closed(client)
    assert (table.strangers, table.known, tuple(table.identities())) == (0, 0, ())


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("", ""),
    ],
)
def test_a_subscriber_of_ipv6_is_its_prefix(host: str, address: str) -> None:
    """Mutant: whole addresses count, and one machine has 2**64 of them."""
    assert address_of(host) == address


def test_an_address_has_a_quarter_and_never_less_than_a_few() -> None:
    assert limits(20_000).strangers == 5_000
    assert limits(100).strangers == 64
