"""Sentences for people: what each event says, and why a node is where it is."""
