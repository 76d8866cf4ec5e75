"""The checks themselves: each function takes `Work` and returns an `Answer`; they run in children only."""
