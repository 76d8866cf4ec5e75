"""The tables: phases, recipes, operations, conditions. One row holds what is known of its thing."""
