"""The log, its index by subject, raw observations, cursors, snapshots and the lease."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Lay out an empty database."""
    _log()
    _observations()
    op.create_table(
        "snapshots",
        sa.Column("seq", _serial, primary_key=True, autoincrement=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("checksum", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "snapshot_parts",
        sa.Column("seq", sa.BigInteger, primary_key=True),
        sa.Column("part", sa.Integer, primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    lease = op.create_table(
        "lease",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("holder", _text, nullable=False),
    )
    op.bulk_insert(lease, [{"id": 1, "epoch": 0, "holder": ""}])


def _log() -> None:
    op.create_table(
        "records",
        sa.Column("seq", _serial, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("cause", _text, nullable=False),
        sa.Column("name", _text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
    )
    op.create_index("records_at", "records", ["at"])
    op.create_table(
        "subjects",
        sa.Column("subject", _text, primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True),
        sqlite_with_rowid=False,
    )


def _observations() -> None:
    op.create_table(
        "observations",
        sa.Column("id", _serial, primary_key=True),
        sa.Column("node", _text, nullable=False),
        sa.Column("spool", _text, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("received", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("observations_sender", "observations", ["node", "spool", "sequence"], unique=True)
    op.create_table(
        "cursors",
        sa.Column("node", _text, primary_key=True),
        sa.Column("spool", _text, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
