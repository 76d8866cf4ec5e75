"""Redfish: power, boot, firmware, inventory and readings of a node through its BMC."""
