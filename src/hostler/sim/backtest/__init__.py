"""A changed policy on recorded history: what it would have done otherwise, and what is not known of that."""
