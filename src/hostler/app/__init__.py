"""The composition root: what is wired to what in one running Hostler."""
