"""The lease is reached at an address and renewed; members, restorations, archives; who can use the database."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add columns and tables; nothing that is there changes."""
    op.add_column("lease", sa.Column("address", _text, nullable=False, server_default=""))
    op.add_column("lease", sa.Column("renewal", sa.BigInteger, nullable=False, server_default="0"))
    op.create_table(
        "members",
        sa.Column("name", _text, primary_key=True),
        sa.Column("address", _text, nullable=False),
        sa.Column("reads", sa.Integer, nullable=False),
        sa.Column("beats", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "restorations",
        sa.Column("id", _serial, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("source", _text, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "archives",
        sa.Column("last", _serial, primary_key=True, autoincrement=False),
        sa.Column("first", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("file", _text, nullable=False),
    )
    usable = op.create_table("usable", sa.Column("lowest", _text, primary_key=True))
    op.bulk_insert(usable, [{"lowest": "0002"}])
