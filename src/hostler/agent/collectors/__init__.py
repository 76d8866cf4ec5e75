"""Where the agent looks: each collector turns one source on the node into sightings or parts."""
