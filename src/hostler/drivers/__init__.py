"""The drivers: each answers one of the engine's ports for one kind of outside system."""
