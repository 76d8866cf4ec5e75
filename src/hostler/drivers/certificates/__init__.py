"""A site's own authority, which issues certificates to its BMCs."""
