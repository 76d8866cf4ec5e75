"""Judges a world from outside: by what really happened and what the journal says, never by the code under test."""
