"""The network as designed against the network as found: the fewest findings that a technician can act on."""
