"""Turn one party's own columns into numbers: labels, gaps, categories, scales, weight of evidence."""
