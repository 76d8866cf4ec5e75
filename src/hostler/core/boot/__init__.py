"""Boots over the network: what each node is answered in each phase, and the data its first boot is given. Pure."""
