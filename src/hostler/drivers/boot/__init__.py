"""Boots over the network: the secret that a BMC hands to its machine, and configuration for DHCP servers."""
