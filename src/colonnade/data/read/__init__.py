"""Read one file, whatever its format: a RawTable of numbers, text and gaps."""
