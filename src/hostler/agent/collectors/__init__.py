"""Collectors: each turns one source on the node into observations or parts."""
