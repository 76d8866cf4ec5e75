"""Serves what a node boots from, and installs it."""
