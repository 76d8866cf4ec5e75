"""Judges readings of many nodes: cohorts, drift beside peers, false-alarm budgets, lemons. Arrays in, arrays out.

Arrays hold one metric: rows are series (a node, or one of its parts), columns are days, NaN is no reading.
"""
