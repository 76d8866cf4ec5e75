"""Detection's truth table: what is planted, what is recorded of it and how soon, and false alarms in healthy life."""

from bench.detection.run import short as main

__all__ = ["main"]
