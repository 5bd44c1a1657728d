"""What crosses encrypted between two parties alone that train a linear model (docs/two.md).

1. `home_columns`: a party's columns: rare ones left out, scaled, in whole numbers; scores and noise.
2. `encrypted_products`: who asks whom for which product, in stretches of rows.
3. `final_loss`: the loss of the finished model, and scores of test rows.

`parties.encrypted` is the party.
"""
