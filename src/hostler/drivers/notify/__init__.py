"""Tells people and other systems what happened."""
