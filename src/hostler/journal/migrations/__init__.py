"""The steps from one layout of the journal's tables to the next, for every database; Alembic runs them."""
