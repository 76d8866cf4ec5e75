"""Injected faults of small worlds: each kind a function of the stage, a node, and a chance of its own."""
