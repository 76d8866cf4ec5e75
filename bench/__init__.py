"""Benchmarks: they print figures and never judge."""
