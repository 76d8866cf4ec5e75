"""Log lines: facts by name, one line each, without secrets and without anything that a terminal obeys."""
