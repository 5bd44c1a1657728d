"""Products of two parties' numbers without a third, by encryption that can be added and multiplied.

One party asks: it has a key and sends what it knows encrypted. The other owns columns, multiplies and
answers. Both end with parts that add up to the products. Nothing here sends anything or remembers a round; a
conversation says who asks whom for what.

1. `arithmetic`: polynomials modulo primes; `_lattice.c` for several processors, `portable` without it.
2. `parameters`: sizes that are known to be secure and to decrypt, and what floods let through.
3. `source`: random words, secret ones and those that both parties can make from a seed.
4. `ciphertexts`: keys, encryption, fresh encryptions of zero, and bytes.
5. `slots`: products row by row, exact, for theta. `columns`: inner products for gradients and scores.

docs/lattice.md has the argument, the bounds, and what was found wrong with earlier drafts of this design.
"""
