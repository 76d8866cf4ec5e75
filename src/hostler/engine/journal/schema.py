"""The journal's tables, once, for every database that SQLAlchemy Core speaks."""

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, Table, Text

SCHEMA_VERSION = 2
"""The layout of these tables; a journal of another layout is not opened."""

metadata = MetaData()

# SQLite gives a table its fast row id only for a column declared INTEGER.
_Serial = BigInteger().with_variant(Integer(), "sqlite")

records = Table(
    "records",
    metadata,
    Column("seq", _Serial, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("cause", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Index("records_at", "at"),
)
"""The log. Columns in the order of `codec.Row`."""

subjects = Table(
    "subjects",
    metadata,
    Column("subject", Text, primary_key=True),
    Column("seq", BigInteger, primary_key=True),
    sqlite_with_rowid=False,
)
"""Which records are about whom: `events.subjects_of`, for the history of one node, part, ticket or scope."""

observations = Table(
    "observations",
    metadata,
    Column("id", _Serial, primary_key=True),
    Column("node", Text, nullable=False),
    Column("spool", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("received", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("observations_sender", "node", "spool", "sequence", unique=True),
)
"""Raw observations; (node, spool, sequence) is their identity. `id` grows with `received`: pruning walks it."""

cursors = Table(
    "cursors",
    metadata,
    Column("node", Text, primary_key=True),
    Column("spool", Text, nullable=False),
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
    Column("holder", Text, nullable=False),
    Column("address", Text, nullable=False, server_default=""),
    Column("renewal", BigInteger, nullable=False, server_default="0"),
)
"""One row: the epoch of the active controller, its name, its address, how often it renewed. Epoch 0 has no writer."""

members = Table(
    "members",
    metadata,
    Column("name", Text, primary_key=True),
    Column("address", Text, nullable=False),
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
    Column("source", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
)
"""When this journal was filled from a copy (µs since 1970 UTC), from what, and up to which record."""
