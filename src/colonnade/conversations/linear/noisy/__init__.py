"""What parties share that are told gradients with noise, two alone (docs/two.md) or with dealers.

1. `product_forms`: theta, by loss, as products of what two parties know of their own scores.
2. `rare`: columns that say something of few rows alone, which are left out.
3. `row_noise`: noise of some rows, and how loud it is; `noisy_lbfgs`: directions from such gradients.
4. `party`: a party whose gradients have noise, in either kind. `whole_columns`: columns where dealers help;
   `optimum`: whether a finished model is one.

`algorithm.noisy_full` is the loop, `parties.encrypted` and `parties.dealt` are the two kinds.
"""
