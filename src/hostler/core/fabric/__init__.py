"""Compares the designed network with the discovered one, down to findings a technician can act on."""
