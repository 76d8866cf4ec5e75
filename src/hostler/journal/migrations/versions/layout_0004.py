"""A subject's records are found by their names. Only a column is added: controllers of layout 0003 use it as it is.

What they write, and what is here already, has no name there (NULL): a reader looks at the record itself. Filling it in
would hold a large journal up for its whole length.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the column; nothing that is there changes."""
    op.add_column("subjects", sa.Column("name", _text))
