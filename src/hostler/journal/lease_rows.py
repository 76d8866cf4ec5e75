"""Statements about the lease and standbys, inside a transaction of any database."""

from sqlalchemy import Connection, delete, insert, select, update

from hostler.journal.lease_succession import next_holder, refuse_fenced
from hostler.journal.schema import lease, members
from hostler.ports import ControllerMember, Lease


def lease_of(connection: Connection) -> Lease:
    """The lease as it stands."""
    return Lease(*connection.execute(_LEASE).one())


def held(db: Connection) -> Lease:
    """The lease, which nobody changes before this transaction ends."""
    return Lease(*db.execute(_LEASE.with_for_update()).one())


def take(db: Connection, holder: str, address: str, seen: Lease | None) -> int:
    """Give the lease to `holder` under the next epoch, which is returned; FencedError where it is not `seen`."""
    now = held(db)
    taken = next_holder(now, holder, address, seen)
    db.execute(update(lease).values(epoch=taken.epoch, holder=holder, address=address, renewal=0))
    return taken.epoch


def renew(db: Connection, epoch: int) -> None:
    """Count one renewal; FencedError where the epoch does not hold the lease."""
    fence(db, epoch)
    db.execute(update(lease).values(renewal=lease.c.renewal + 1))


def resign(db: Connection, epoch: int) -> None:
    """Leave the lease to nobody, if the epoch still holds it."""
    db.execute(update(lease).where(lease.c.epoch == epoch).values(holder="", address=""))


def fence(db: Connection, epoch: int) -> None:
    """Raises FencedError unless the epoch holds the lease; until the transaction ends nobody else can take it."""
    refuse_fenced(held(db), epoch)


def announce(db: Connection, member: ControllerMember) -> None:
    """Write a controller down with one beat more than before."""
    values = {"address": member.address, "reads": member.reads}
    known = update(members).where(members.c.name == member.name)
    if not db.execute(known.values(**values, beats=members.c.beats + 1)).rowcount:
        db.execute(insert(members).values(name=member.name, **values, beats=1))


def members_of(connection: Connection) -> tuple[ControllerMember, ...]:
    """Every controller written down, by name."""
    return tuple(ControllerMember(*row) for row in connection.execute(select(members).order_by(members.c.name)))


def dismiss(db: Connection, name: str) -> None:
    """Forget a controller, if it is known."""
    db.execute(delete(members).where(members.c.name == name))


_LEASE = select(lease.c.epoch, lease.c.holder, lease.c.address, lease.c.renewal)
