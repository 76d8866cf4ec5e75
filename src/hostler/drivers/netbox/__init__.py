"""NetBox: devices of an inventory, read as expected nodes."""
