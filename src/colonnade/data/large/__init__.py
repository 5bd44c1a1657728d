"""Read and store files that are too large to be held, a stretch of rows at a time."""
