"""The nouns, the recorded events and their fold, the fleet in memory, live state, and what one decision looks at."""
