"""What two parties alone do with weights that nobody knows (`secure.reveal = "never"`, docs/two.md).

1. `wrapped_parts`: multiples and inner products of numbers that both have in parts.
2. `turned_columns`: a party's columns, turned so that a step is right that both know before.
3. `both_blocks`: both blocks of columns times weights, and thetas, in parts.
4. `wave_theta`: theta and loss of scores in parts. `parted_scores`: rows scored with such weights.

`parties.parted` is the party, `algorithm.accelerated` its loop.
"""
