"""How often the garbage collector looks at a fleet, which lives on."""

COLLECTIONS = (50_000, 20, 100)
"""Objects between two collections of each generation. At Python's own 700 a sweep of thousands of BMCs spends a fifth
of its time walking objects that live on."""
