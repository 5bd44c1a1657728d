"""An oblivious function of ids from a few hundred oblivious transfers, however many ids there are.

Pinkas, Rosulek, Trieu and Yanai 2020 ("PSI from PaXoS"), on the transfer extension with a linear code of
Orrù, Orsini and Scholl 2017. Both hold against a side that does not follow the protocol.

1. `base`: the key holder gets one of two seeds for each of 512 columns, by secret choices s, on the curve.
2. `function`: the asker writes its ids into a table D (`secure.hints`) from which every id x of its own reads
   H1(x), 76 bits.
3. `extension`: seeds become columns of noise, so the asker has rows T and the key holder rows
   Q = T + (C(D) and s), C being a code (`code`) any two words of which differ in 172 of 512 bits. A check of
   random sums of rows shows that the asker used words of the code.
4. All of it is linear: reading Q at x and adding (C(H1(x)) and s) gives what reading T at x gives if D holds
   x, and else a row with 172 unknown bits. F(x) is a hash of that.

docs/align.md has the argument, the parameters and what a cheating side can do.
"""
