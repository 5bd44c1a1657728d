"""Statistics of columns: those of one party's own, and how the columns of all parties go together.

`columns` describes a party's own columns, which stay with it. `own` makes of its prepared columns what may be
correlated with others'. `joint` is what follows from correlations alone, exact or with noise: variance
inflation, and least squares with p-values.
"""
