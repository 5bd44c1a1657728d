"""A party's rows for a run: read from its file, known to others by digests of their ids alone."""
