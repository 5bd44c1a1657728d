"""When rounds may begin: rounds of m label holders, in one order or each at its own pace.

A round is one batch. One label holder, its dominator, gets everybody's share of the scores and sends theta
back. Every party derives all rounds from the plan's seed (`schedule`), so it gives its shares before anybody
asks. What has to be decided is how far ahead, and all of that is decided here; an algorithm asks its `Pacing`
and does not know which one it has.

One question governs both kinds: may this party begin this round now?

- In one order (`one_order`) dominators take turns. Round k may begin once all but `ahead` - 1 of the rounds
  before it are finished here. With `ahead` = 1 that is the synchronous algorithm.
- At their own pace (`own_pace`) every dominator has such a window of its own, and a fast one launches more
  rounds than a slow one. How far ahead each gets its shares follows from how many it used since the party's
  last update (`shares_ahead`), so that nobody waits while a slow party computes. Somebody must say how many
  rounds there are: a round exists once one agreed party, the keeper, has given its share.

Both pause at gates, where all parties stand after the same rounds: in one order a gate is the number of a
round; at their own pace the keeper tells how many rounds of each dominator that is (`stages`, with
`round_counts`). Delays are bounded by the windows and, at their own pace, by how many shares a dominator gets
between two thetas of another (`delay_bound` has the proof); `delays` counts those that happened.

Within a party: `upcoming` are the rounds of others to give shares to next, `thetas` those that came and wait,
and `priority_lock` hands out the party's time, shares first, then its own round, then others' thetas. Tasks
wait for each other through `conditions`.
"""
