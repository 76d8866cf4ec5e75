"""From conditions and phases to plans: the next step of each node, its execution, and how it ends."""
