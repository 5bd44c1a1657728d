"""The same training beside other programs, each in an environment of its own and run as it is."""
