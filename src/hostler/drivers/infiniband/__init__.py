"""Discovers an InfiniBand fabric and reads its ports."""
