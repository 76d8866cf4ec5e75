"""The controller loop: remembers every decision before anything acts on it."""
