"""Labels from what an owner of columns hears while trees grow: gradients, and which rows share a node.

In clear text g = dL/dz of the first tree has the sign of the label. Where labels are blind the same words are
uniformly random, and the attack, which takes them as they are, comes no further than guessing.

Nodes are heard in any case, but for the last level of a tree. Trees split rows that differ in their labels,
so rows that share nodes in many trees have like labels: the direction along which rows' nodes differ most is
a guess at their score, without any label known. `with_known_labels` knows some, and asks a row's companions.

Sees: what one owner hears, its own columns, and the job.
"""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Floats, Numbers, Rows
from colonnade.attacks.case import Case, LabelGuess
from colonnade.conversations.boost.sealed import SealedSums, seals
from colonnade.conversations.boost.veiled import unpacked_words
from colonnade.conversations.boost.wire import flags_of, level_of, tag_for
from colonnade.messages import Divide, Gradients, Sealed, Sides
from colonnade.secure.lattice.ciphertexts import Ciphertexts
from colonnade.secure.lattice.histograms import chunks_of, rounded_to_plain
from colonnade.trees.boosting import Sampling
from colonnade.trees.frontier import Frontier
from colonnade.trees.gradients import parted, unpacked
from colonnade.trees.grow import Level
from colonnade.trees.own_columns import OwnColumns, joined_sides

TREES = 20  # that the direction is taken from


def labels_from_gradients(case: Case) -> LabelGuess:
    """Return the sign of g in every class's first tree, read as if it were sent in clear."""
    plan = case.plan
    classes, sampling = max(plan.objective.classes, 1), _sampling(case)
    found = np.zeros((case.rows, classes))
    met = np.zeros((case.rows, classes), dtype=bool)
    first = _as_encrypted(case) if seals(plan) else None
    for tree, words in _gradients(case).items():
        rows = np.flatnonzero(sampling.rows_of(tree))
        if first is not None and tree:
            break  # one tree is enough to see that it tells nothing
        g = _first_derivatives(words, len(rows)) if first is None else first[: len(rows)]
        new = rows[~met[rows, tree % classes]]
        found[new, tree % classes] = -g[~met[rows, tree % classes]]
        met[new, tree % classes] = True
    if not plan.objective.classes:
        return LabelGuess(found[:, 0])
    return LabelGuess(np.where(met.all(axis=1), found.argmax(axis=1), -1))


def _first_derivatives(words: Numbers, rows: int) -> Numbers:
    """Return g of what was sent for some rows, read as if nothing hid it."""
    if words.dtype == np.uint8:  # for veiled bins
        return unpacked_words(words, len(words) // (2 * rows))[:rows].view(np.int32)
    return parted(words if words.dtype == np.uint64 else unpacked(words))[0]


def _as_encrypted(case: Case) -> Numbers:
    """Return g of the first tree's rows as c_0 of its ciphertexts has it if the key were 0."""
    rules = case.plan.settings.trees
    sampling = _sampling(case)
    rows = int(sampling.rows_of(0).sum())
    own = OwnColumns(
        case.own.X, sampling, case.plan.parties.index(case.party), categories=case.own.categories
    )
    own.begin(0)
    sums = SealedSums.of(rules, np.array([rows]), own.chosen.grid)
    ring, apart = sums.ring, sums.apart[0]
    bodies = [m.body.tobytes() for _, m in case.transcript.heard if isinstance(m, Sealed)]
    asked = Ciphertexts.read(ring, 1, chunks_of(rows, apart), bodies[1])  # after a public key
    values = [m.inverse(asked.values[k, 0, 0].copy())[:, :apart] for k, m in enumerate(ring.moduli)]
    return parted(sums.unpacked(rounded_to_plain(ring, values).reshape(-1)[:rows]))[0]


def labels_from_nodes(case: Case) -> LabelGuess:
    """Return the place of every row along the direction in which the rows' nodes differ most."""
    ways = nodes_seen(case)[:TREES]
    if not ways:
        return LabelGuess(np.zeros(case.rows), oriented=False)
    member = np.concatenate([_one_hot(way) for way in ways], axis=1)
    member -= member.mean(axis=0)
    # of rows by rows it would be a large matrix; of nodes by nodes it is small
    line = np.linalg.eigh(member.T @ member)[1][:, -1]
    along: Floats = member @ line
    return LabelGuess(along, oriented=False)


def with_known_labels(ways: list[Numbers], known: Rows, y: Floats) -> Floats:
    """Return a score for every row: the mean of known labels, each weighed by the nodes that both rows
    share."""
    shared = sum((way[:, None] == way[known]).astype(np.float64) for way in ways)
    weight = np.asarray(shared, dtype=np.float64) ** 2
    score: Floats = (weight @ y[known]) / np.maximum(weight.sum(axis=1), 1e-12)
    return score


def nodes_seen(case: Case) -> list[Numbers]:
    """Return, for every tree that a party takes part in, the last node in which it saw each row, as a
    number."""
    sampling = _sampling(case)
    divides = {m.tag: m for _, m in case.transcript.heard if isinstance(m, Divide)}
    sides = {(who, m.tag): m for who, m in case.transcript.heard if isinstance(m, Sides)}
    sides |= {(case.party, m.tag): m for _, m in case.transcript.said if isinstance(m, Sides)}
    ways = []
    for tree in _gradients(case):
        frontier, depth = Frontier(sampling.rows_of(tree)), 0
        way, tag = np.zeros(case.rows, dtype=np.int64), tag_for(tree)
        while tag in divides:
            level = level_of(divides[tag], frontier)
            if level.last:
                break
            left = joined_sides(_heard(case, level, frontier, sides, tag), level, frontier)
            way[frontier.rows] = 2 * way[frontier.rows] + 1 + left
            frontier.divide(level.split, left, level.stays)
            depth += 1
            tag = tag_for(tree, depth)
        ways.append(way)
    return ways


def _heard(
    case: Case,
    level: Level,
    frontier: Frontier,
    sides: dict[tuple[str, int], Sides],
    tag: int,
) -> list[tuple[int, Numbers]]:
    """Return every splitting party's sides, as they were said and heard."""
    found = []
    for party in np.unique(level.party[level.split]).tolist():
        rows = int(frontier.counts[level.party == party].sum())
        found.append((party, flags_of(sides[case.plan.parties[party], tag].left, rows)))
    return found


def _gradients(case: Case) -> dict[int, Numbers]:
    """Return what a party was sent for every tree that it took part in, by the number of the tree."""
    own = case.plan.parties.index(case.party)
    sealed = seals(case.plan)
    heard = [m for _, m in case.transcript.heard if isinstance(m, Gradients)]
    took_part = [m for m in heard if m.words.size or (sealed and own in m.turn)]
    return {(m.tag & (1 << 48) - 1) >> 8: m.words for m in took_part}


def _sampling(case: Case) -> Sampling:
    return Sampling(case.plan.settings.trees, case.plan.seed, case.rows)


def _one_hot(way: Numbers) -> Floats:
    """Return a column for every node, 1 in its rows."""
    _, code = np.unique(way, return_inverse=True)
    return np.eye(int(code.max()) + 1)[code]
