"""Intents of people, verb by verb, and how each is answered."""
