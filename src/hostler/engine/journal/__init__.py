"""The append-only log of what happened, and the snapshots that shorten reading it."""
