"""Polling of BMCs: whose turn it is, how it is asked, and what was read."""
