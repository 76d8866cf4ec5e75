"""Compares a node with its peers and with its own past."""
