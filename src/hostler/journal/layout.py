"""Brings a database to the layout of `schema`: laid out if it is empty, upgraded if it is older, refused otherwise.

Layouts grow before they shrink, so that controllers of two versions can share one: a step that only adds leaves the
table `usable` at the layout before, a step that takes away or changes raises it. A newer layout that says it can be
used by the code of ours is used as it is.

The steps are Alembic's, in `migrations`; it is imported only where there is a step to take.
"""

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from hostler.journal.database import Database
from hostler.ports import JournalError

HEAD = "0004"
"""The layout that `schema` describes; the last file in `migrations/versions`."""

OLDER = ("0001", "0002", "0003")
TABLE = "journal_layout"
MIGRATIONS = Path(__file__).parent / "migrations"


def prepare(database: Database) -> None:
    """Lay out or upgrade, in one transaction that excludes all other processes.

    Raises JournalError for another program's database and for a layout that this version does not know.
    """
    with database.upgrading() as db:
        revision = known(database, db)
        if revision == HEAD:
            return
        _upgrade(db, revision)
        database.mark(db, int(HEAD))


def known(database: Database, db: Connection) -> str:
    """The revision of a layout that can be used or upgraded, "" for an empty database; else JournalError."""
    if why := database.foreign(db):
        raise JournalError(why)
    written, unmarked = _revision(db), database.unmarked(db)
    revision = written or unmarked
    if revision in ("", *OLDER) or written == HEAD:
        return revision
    lowest = _lowest(db)
    if lowest and lowest <= HEAD:
        return HEAD
    needs = f" and needs a Hostler of layout {lowest}" if lowest else ""
    raise JournalError(
        f"{database.name} has layout {revision}{needs}, this Hostler knows up to layout {HEAD}: "
        "run the Hostler that wrote it or a newer one"
    )


def require(database: Database, db: Connection) -> None:
    """Raises JournalError unless the layout is today's, for who only reads."""
    if (revision := known(database, db)) != HEAD:
        what = f"has layout {revision}, this Hostler reads layout {HEAD}" if revision else "is empty"
        raise JournalError(f"{database.name} {what}: it is brought to it when a controller opens it")


def _revision(db: Connection) -> str:
    if not inspect(db).has_table(TABLE):
        return ""
    return db.execute(text(f"SELECT version_num FROM {TABLE}")).scalar_one_or_none() or ""  # noqa: S608 - a constant


def _lowest(db: Connection) -> str:
    """The lowest layout whose code can use the database, "" where it does not say."""
    if not inspect(db).has_table("usable"):
        return ""
    return db.execute(text("SELECT lowest FROM usable")).scalar_one_or_none() or ""


def _upgrade(db: Connection, revision: str) -> None:
    from alembic import command  # noqa: PLC0415 - half a second that only an upgrade pays
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = db
    if revision and not _revision(db):
        command.stamp(config, revision)
    command.upgrade(config, HEAD)
