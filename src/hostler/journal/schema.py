"""The journal's tables, once, for every database that SQLAlchemy Core speaks."""

from sqlalchemy import BigInteger, Column, Dialect, Index, Integer, LargeBinary, MetaData, Table, Text, TypeDecorator

metadata = MetaData()


class EscapedText(TypeDecorator[str]):
    """Text in PostgreSQL, which sorts by code point and knows no NUL: that is written with an escape."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's
        """Escape the text on its way into the database."""
        return value if value is None else escaped(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Take the escapes back."""
        return value.replace("\x100", "\0").replace("\x101", "\x10") if value and "\x10" in value else value


def escaped(text: str) -> str:
    """Text without a NUL; the inverse of what EscapedText reads."""
    return text.replace("\x10", "\x101").replace("\0", "\x100") if "\0" in text or "\x10" in text else text


# SQLite gives a table its fast row id only for a column declared INTEGER.
_Serial = BigInteger().with_variant(Integer(), "sqlite")
_Text = Text().with_variant(EscapedText(collation="C"), "postgresql")

records = Table(
    "records",
    metadata,
    Column("seq", _Serial, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("cause", _Text, nullable=False),
    Column("name", _Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Index("records_at", "at"),
    Index("records_name", "name", "at"),
)
"""The log. Columns in the order of `codec.Row`. Few records have a name that is asked for since a moment."""

subjects = Table(
    "subjects",
    metadata,
    Column("subject", _Text, primary_key=True),
    Column("seq", BigInteger, primary_key=True),
    Column("name", _Text),
    sqlite_with_rowid=False,
)
"""Subjects of records: `events.subjects_of`, for the history of one node, part, ticket or scope.

`name` is the record's, so that a reader who needs a few names touches no record of another; NULL in rows of code that
did not write it yet, where the record itself is asked.
"""

observations = Table(
    "observations",
    metadata,
    Column("id", _Serial, primary_key=True),
    Column("node", _Text, nullable=False),
    Column("spool", _Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("received", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("observations_sender", "node", "spool", "sequence", unique=True),
)
"""Raw observations; (node, spool, sequence) is their identity. `id` grows with `received`: pruning walks it."""

cursors = Table(
    "cursors",
    metadata,
    Column("node", _Text, primary_key=True),
    Column("spool", _Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""How far each node's spool has been read."""

snapshots = Table(
    "snapshots",
    metadata,
    Column("seq", _Serial, primary_key=True, autoincrement=False),
    Column("digest", LargeBinary, nullable=False),
    Column("version", Integer, nullable=False),
    Column("checksum", LargeBinary, nullable=False),
)
"""Checkpoints. A row is written after all parts of its body, so a snapshot that is listed is whole."""

snapshot_parts = Table(
    "snapshot_parts",
    metadata,
    Column("seq", BigInteger, primary_key=True),
    Column("part", Integer, primary_key=True),
    Column("body", LargeBinary, nullable=False),
)
"""Bodies of snapshots in pieces, so that writing one never holds up an append for long."""

lease = Table(
    "lease",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, nullable=False),
    Column("holder", _Text, nullable=False),
    Column("address", _Text, nullable=False, server_default=""),
    Column("renewal", BigInteger, nullable=False, server_default="0"),
)
"""One row: the epoch of the active controller, its name, its address, how often it renewed. Epoch 0 has no writer."""

members = Table(
    "members",
    metadata,
    Column("name", _Text, primary_key=True),
    Column("address", _Text, nullable=False),
    Column("reads", Integer, nullable=False),
    Column("beats", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""The controllers of the cell, active or standing by. Columns in the order of `ports.Member`."""

restorations = Table(
    "restorations",
    metadata,
    Column("id", _Serial, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("source", _Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
)
"""When this journal was filled from a copy (µs since 1970 UTC), from what, and up to which record."""

archives = Table(
    "archives",
    metadata,
    Column("last", _Serial, primary_key=True, autoincrement=False),
    Column("first", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("file", _Text, nullable=False),
)
"""The records `first` to `last` are no longer here but in a file of that name; `digest` is the chain's at `last`."""

usable = Table("usable", metadata, Column("lowest", _Text, primary_key=True))
"""One row: the lowest layout whose code can use this database; see `layout`."""
