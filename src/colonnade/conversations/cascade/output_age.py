"""How old an output in the server's table can be when an answer uses it: the bound, its proof.

Time is counted in answers, each of which is an update of the run. The delay is that of the theorems
(AsyREVEL's Assumption 4; VFL-CZOFO's Assumption B.8, for every client and row): from the state of a client's
parameters that an entry was computed with to an answer that uses it. A client returns to a row after at most
2 P - 1 of its batches, P being those of a pass, and nothing else refreshes an entry; so what the server can
bound is how long a client's questions take. With q clients, `ahead` questions of each under way and answers
held back while one was silent for `silence` of them, say m = max(silence, ahead q). Then
- a question waits for at most ahead q - 1 others once the server has taken it;
- a client's next question is taken within m: it is here before the last is answered, or else the client is
  silent, and no answer is given from `silence` after its last question was taken until the next comes;
- so n questions of a client later at most (n + 1) m answers were given. The server's own client also waits
  until the quickest other has as many answers, which costs less than one m more: (n + 2) m;
- a question is computed before the last ahead - 1 answers to its client are there.
An entry is used for 2 P - 1 questions, and was computed ahead - 1 before it came: (2 P + ahead) m answers.
First entries, which are those of no question, are replaced within one pass.
"""

from __future__ import annotations

from colonnade.errors import JobError

USUAL = 8  # answers for every client during which one may be silent, where the job bounds nothing


def delay_bound(per_pass: int, ahead: int, clients: int, silence: int) -> int:
    """Return the most answers that an entry can be old, with this many batches in a pass.

    >>> delay_bound(10, 1, 3, 24), delay_bound(10, 1, 3, 2), delay_bound(10, 2, 3, 24)
    (504, 63, 528)
    """
    return (2 * per_pass + ahead) * max(silence, ahead * clients)


def silence_within(per_pass: int, ahead: int, clients: int, max_delay: int | None) -> int:
    """Return for how many answers a client may be silent, so that `max_delay` is kept.

    >>> silence_within(10, 1, 3, 63), silence_within(10, 1, 3, 600), silence_within(10, 1, 3, None)
    (3, 28, 24)
    """
    if max_delay is None:
        return USUAL * clients
    least = delay_bound(per_pass, ahead, clients, 0)
    if max_delay < least:
        raise JobError(
            f"train.max_delay: {clients} clients, each with {ahead} questions under way, come back to a row "
            f"within two passes of {per_pass} batches: outputs can be {least} answers old at the least, over "
            f"max_delay = {max_delay}; set max_delay = {least}, or use a synchronous algorithm"
        )
    return max_delay // (2 * per_pass + ahead)
