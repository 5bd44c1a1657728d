"""Find, check and load the data sets that a job may name."""
