"""Peers: others' ways of looking after a cluster, run in the same worlds as Hostler's own."""
