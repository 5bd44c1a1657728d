"""Give every party of a job its columns and its rows, in memory or as files."""
