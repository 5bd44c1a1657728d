"""How trees travel: what messages hold becomes arrays that the rest computes with, checked on arrival."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from colonnade.arrays import Matrix, Numbers, Words
from colonnade.conversations.predict import HERE, Workplace
from colonnade.errors import JobError, MalformedMessage, ProtocolError
from colonnade.job import Trees
from colonnade.messages import (
    TOPIC_SHIFT,
    Bins,
    Divide,
    Gradients,
    Grown,
    Joined,
    Outcomes,
    Topic,
    tag_of,
    topic_of,
)
from colonnade.net.expect import Expected, floats, octets, whole
from colonnade.net.network import Network
from colonnade.trees.bins import SETS, BinGrid, Codes, Flags
from colonnade.trees.estimate import Told
from colonnade.trees.frontier import Frontier
from colonnade.trees.gradients import joined, parted, unpacked
from colonnade.trees.grow import Level
from colonnade.trees.tree import LEAF, Forest, Splits

STRETCH = 2**27  # sides of a message: 16 MiB


GROWN: dict[str, Expected] = {
    **dict.fromkeys(("nodes", "kind", "left", "right", "split"), whole(None, low=LEAF)),
    "value": floats(None),
}
"""What the fields of a `Grown` must be."""


def divided(open_: int, parties: int) -> dict[str, Expected]:
    """Return what the fields of a `Divide` must be, where this many nodes are open."""
    return {
        "party": whole(open_, low=LEAF, high=parties - 1, dtype="int32"),
        "column": whole(open_, dtype="int32"),
        "bin": octets(open_),
        "gaps_left": octets(open_),
        "stays": octets(None),
    }


def tag_for(tree: int, level: int = 0) -> int:
    """Return the tag of a level of a tree."""
    return tag_of(Topic.TRAIN, tree << 8 | level)


def words_of(message: Gradients, sampled: Flags, bits: int) -> Words:
    """Return the words of all rows from those of the rows that a tree learns from; 0 for the others."""
    if message.words.dtype != (np.uint16 if bits else np.uint32) or message.words.shape != (
        int(sampled.sum()),
    ):
        raise MalformedMessage(f"gradients of shape {message.words.shape} for {int(sampled.sum())} rows")
    if len(message.words) == len(sampled):
        return unpacked(message.words)
    words = np.zeros(len(sampled), dtype=np.uint64)
    words[sampled] = unpacked(message.words)
    return words


def joined_of(tag: int, told: Told, spots: Numbers, sent: int, *, clear: bool) -> Joined:
    """Return the message that tells joined bins; sums that are nobody's words go in as few bytes as they
    need."""
    sums: Numbers = told.sums[told.ends]
    if clear:
        sums = in_few_bytes(sums)
    return Joined(tag, sums, np.packbits([told.ends, told.most]), spots, sent)


def in_few_bytes(words: Words) -> Numbers:
    """Return words in as few bytes as they need."""
    both = np.concatenate(parted(words, signed=True))
    few = np.abs(both).max(initial=0) < 2**15
    return both.astype(np.int16).view(np.uint16) if few else both.astype(np.int32)


def from_few_bytes(numbers: Numbers, count: int) -> Words:
    """Return this many words that `in_few_bytes` wrote."""
    if numbers.dtype not in (np.uint16, np.int32) or numbers.shape != (2 * count,):
        raise MalformedMessage(f"{numbers.shape} {numbers.dtype} sums of {count} joined bins")
    both = numbers.view(np.int16) if numbers.dtype == np.uint16 else numbers
    return joined(both[:count], both[count:])


def ends_told(message: Joined, slots: int, grid: BinGrid) -> tuple[Flags, Flags]:
    """Return which bins end a joined one, and which have nearly all of its rows."""
    ends, most = flags_of(message.ends, 2 * slots * grid.total).reshape(2, slots, grid.total)
    if not ends[:, np.where(grid.sets, grid.start, grid.start + grid.ordered - 1)].all():
        raise MalformedMessage("joined bins that go on beyond their column")
    return ends, most


def told_of(message: Joined, slots: int, grid: BinGrid) -> Told:
    """Return the joined bins that were told."""
    ends, most = ends_told(message, slots, grid)
    count, sums = int(ends.sum()), message.sums
    found = np.zeros(ends.shape, dtype=np.uint64)
    whole = sums.dtype == np.uint64 and sums.shape == (count,)
    found[ends] = sums if whole else from_few_bytes(sums, count)
    return Told(found, ends, most)


def grid_of(message: Bins, party: str) -> BinGrid:
    """Return the bins of a party's columns."""
    ordered, gaps = message.ordered.astype(np.int64), message.gaps.astype(bool)
    most = np.where(message.rises == SETS, 256, 255)  # of categories gaps are one more
    if ordered.shape != gaps.shape or ordered.ndim != 1 or (ordered < 1).any() or (ordered > most).any():
        raise ProtocolError(f"{party} says that its columns have {message.ordered} bins")
    rises = message.rises.astype(np.int64)
    if rises.shape != ordered.shape:
        raise ProtocolError(f"{party} says that scores rise with its columns by {message.rises}")
    return BinGrid(ordered, gaps, rises)


def check_constraints(rules: Trees, grids: Sequence[BinGrid]) -> None:
    """Refuse monotone constraints of columns that nobody has."""
    wanted = sum(direction != 0 for direction in rules.monotone_constraints.values())
    found = sum(int((grid.rises != 0).sum()) for grid in grids)
    if found < wanted:
        raise JobError(
            f"trees.monotone_constraints: {wanted} columns are named and the parties have {found} of them; "
            "give the names as they are in the parties' files"
        )


def level_of(message: Divide, frontier: Frontier, sets: Codes | None = None) -> Level:
    """Return what becomes of the open nodes, as the label holder said it to this party."""
    party = message.party.astype(np.int64)
    fields = message.column, message.bin, message.gaps_left
    if party.shape != (frontier.open,) or any(part.shape != party.shape for part in fields):
        raise MalformedMessage(f"{frontier.open} nodes are open, and {party.shape} were divided")
    if message.stays.shape != (2 * int((party != LEAF).sum()),):
        raise MalformedMessage("not two children for every node that is split")
    column, last = message.column.astype(np.int64), message.bin.astype(np.int64)
    return Level(party, column, last, message.gaps_left.astype(bool), message.stays.astype(bool), sets)


def divide_for(party: int, level: Level, tag: int) -> Divide:
    """Return the message to one party: which party splits which node and, for the party's own nodes alone, by
    which column and bin."""
    mine = level.party == party
    return Divide(
        tag,
        level.party.astype(np.int32),
        np.where(mine, level.column, 0).astype(np.int32),
        np.where(mine, level.bin, 0).astype(np.uint8),
        (mine & level.gaps_left).astype(np.uint8),
        level.stays.astype(np.uint8),
    )


def bits_of(flags: Flags) -> Numbers:
    """Return flags as bits."""
    return np.packbits(flags)


def flags_of(bits: Numbers, count: int) -> Flags:
    """Return this many flags that `bits_of` packed."""
    if bits.dtype != np.uint8 or bits.shape != (-(-count // 8),):
        raise MalformedMessage(f"{bits.shape} bytes of sides for {count} rows")
    return np.unpackbits(bits, count=count).view(np.bool_)


def grown_of(forest: Forest) -> Grown:
    """Return the message that tells a party its own trees."""
    stored = forest.arrays()
    names = ("nodes", "kind", "split", "left", "right", "value")
    return Grown(**{name: stored[f"tree.{name}"] for name in names})


def forest_of(message: Grown, party: int, classes: int, splits: int) -> Forest:
    """Return a party's own trees, as it was told; what splits gained is not."""
    count, nodes = int(message.nodes.sum()), (message.split, message.left, message.right, message.value)
    whole = all(part.dtype == np.int64 for part in (message.nodes, message.kind, *nodes[:3]))
    if not whole or message.value.dtype != np.float64 or any(part.shape != (count,) for part in nodes):
        raise MalformedMessage(f"trees of {count} nodes with other numbers of children, splits or scores")
    if message.split.max(initial=LEAF) >= splits or message.kind.max(initial=0) >= max(classes, 1):
        raise MalformedMessage("trees with splits or classes that are not there")
    if not _are_trees(message):
        raise MalformedMessage("nodes whose children are not nodes after them in the same tree")
    zero = np.zeros(count)
    stored = {
        "tree.nodes": message.nodes,
        "tree.kind": message.kind,
        "tree.base": np.zeros(max(classes, 1)),
        "tree.party": np.where(message.split == LEAF, LEAF, party),
        "tree.split": message.split,
        "tree.left": message.left,
        "tree.right": message.right,
        "tree.value": message.value,
        "tree.gain": zero,
        "tree.cover": zero,
    }
    return Forest.from_arrays(stored)


def _are_trees(message: Grown) -> bool:
    """Return whether every split has two children, later in the same tree, so that following them ends."""
    if message.kind.shape != message.nodes.shape or message.nodes.min(initial=1) < 1:
        return False
    size = np.repeat(message.nodes, message.nodes)
    place = np.arange(len(size)) - np.repeat(np.cumsum(message.nodes) - message.nodes, message.nodes)
    inner = message.split != LEAF
    return all(
        bool(((child > place) & (child < size))[inner].all()) for child in (message.left, message.right)
    )


async def send_outcomes(
    net: Network, to: str, tag: int, splits: Splits, X: Matrix, workplace: Workplace = HERE
) -> None:
    """Tell which rows of X go left in every split, in several messages if there are many."""
    for part, rows in enumerate(_stretches(splits.count, int(X.shape[0]))):
        left = await workplace.do(partial(_packed, splits, X[rows]))
        await net.send(to, Outcomes(_part_tag(tag, part), left))


def _packed(splits: Splits, X: Matrix) -> Numbers:
    """Return a bit for every split and row: whether the row goes left."""
    return bits_of(splits.left(X).ravel())


async def receive_outcomes(net: Network, sender: str, tag: int, splits: int, rows: int) -> Flags:
    """Return what `send_outcomes` tells, [splits, rows]."""
    found = np.empty((splits, rows), dtype=bool)
    for part, some in enumerate(_stretches(splits, rows)):
        count = some.stop - some.start
        message = await net.recv(Outcomes, sender, _part_tag(tag, part), left=octets(-(-splits * count // 8)))
        found[:, some] = flags_of(message.left, splits * count).reshape(splits, count)
    return found


def bytes_of_outcomes(splits: int, rows: int) -> int:
    """Return how many bytes `send_outcomes` sends."""
    return sum(-(-splits * (some.stop - some.start) // 8) for some in _stretches(splits, rows))


def _stretches(splits: int, rows: int) -> list[slice]:
    """Cut rows into stretches that fit a message."""
    step = max(1, STRETCH // max(1, splits))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def _part_tag(tag: int, part: int) -> int:
    """Return the tag of one stretch; it has the topic of `tag`."""
    number = tag & (1 << TOPIC_SHIFT) - 1
    return tag_of(topic_of(tag), number << 16 | part)
