"""Nodes whose readings degrade: drawn fleets of readings, the rules of others, and what each rule finds when."""
