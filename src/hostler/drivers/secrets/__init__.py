"""Where secrets are kept: a folder with a file for each field, and Vault."""
