"""Secrets: from a folder with a file for each field, or from Vault."""
