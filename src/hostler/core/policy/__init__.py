"""Turns conditions into remedies, and guards what they may disturb."""
