"""InfiniBand fabrics: what the field's tools print, read as a `Discovery`."""
