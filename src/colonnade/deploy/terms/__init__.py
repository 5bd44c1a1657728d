"""What a run between companies is: its terms, and the contract that they become once checked."""
