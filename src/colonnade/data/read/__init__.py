"""Read one file of any format: a RawTable of numbers, text and gaps."""
