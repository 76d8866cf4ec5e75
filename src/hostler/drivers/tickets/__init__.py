"""Drivers of ticket systems: our tickets are made, told on and closed there, and looked at when closed there."""
