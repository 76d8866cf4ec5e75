"""From findings to conditions: lifecycle, merging of witnesses, staleness, recurrence."""
