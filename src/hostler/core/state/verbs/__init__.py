"""Verbs that people may ask for: one struct per verb, with its arguments as fields and its facts beside them."""
