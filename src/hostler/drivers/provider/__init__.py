"""Hands for machines that somebody else owns: a cloud's instances, a colocation's remote hands."""
