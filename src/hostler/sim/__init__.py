"""The simulator: a seeded world in which the real controller runs, and the checkers that judge it."""
