"""The append-only log of a cell: SQLite on one host, memory for the simulator, one contract for both."""
