"""What a daemon writes down: budget, decisions, unfinished trainings, counts of comparisons and scores."""
