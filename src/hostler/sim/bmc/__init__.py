"""The emulated BMC: a pure machine, the Redfish service in front of it, and the ways to reach that service."""
