"""What a party allows: proposals, costs, comparisons of ids, and how often a peer may ask."""
