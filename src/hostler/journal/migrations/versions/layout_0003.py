"""Records are found by their name and moment. Only an index is added: controllers of layout 0002 use it as it is."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the index; nothing that is there changes."""
    op.create_index("records_name", "records", ["name", "at"])
