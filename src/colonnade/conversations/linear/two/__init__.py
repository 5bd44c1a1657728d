"""Two parties' parts of a linear model between which everything crosses encrypted (docs/two.md).

1. `theta`: what each party adds to theta of its own scores, and the factors of products, by loss.
2. `own_columns`: a party's columns: rare ones left out, scaled, in whole numbers; scores and noise.
3. `line`, `products`: what crosses: ciphertexts in stretches of rows, and who asks whom.
4. `noisy_lbfgs`: directions from gradients with noise, by inner products of few bits.
5. `measure`: the loss of the finished model, and scores of test rows.

`algorithm.encrypted` is the conversation.
"""
