"""The messages that parties send each other: typed, frozen, and the only thing that leaves a party.

A message is a msgspec struct, so its schema is checked while it is decoded; arrays travel as a type
code, a shape and raw little-endian bytes, or as nothing but bytes where that is all they are. There is no
pickle anywhere: a message can only become one of the classes below. `tag` says which of many concurrent
exchanges a message belongs to; its upper bits name the topic (training, evaluation, ...), so two topics
never share a tag.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar

import msgspec
import numpy as np

from colonnade.arrays import Numbers
from colonnade.errors import MalformedMessage

TOPIC_SHIFT = 48


class Topic(IntEnum):
    """The purpose of an exchange. Evaluation and set-up are not training traffic and are counted apart."""

    TRAIN = 0
    EVALUATE = 1
    TUNE = 2
    PREDICT = 3
    SNAPSHOT = 4
    CURVATURE = 5
    PAIR = 6
    PAUSE = 7
    WOE = 8
    ALIGN = 9
    BLIND = 12
    GATE = 13


def tag_of(topic: Topic, number: int) -> int:
    """The tag of the `number`-th exchange about `topic`.

    >>> topic_of(tag_of(Topic.EVALUATE, 7)).name
    'EVALUATE'
    """
    return topic << TOPIC_SHIFT | number


def topic_of(tag: int) -> Topic:
    """The topic that a tag belongs to."""
    return Topic(tag >> TOPIC_SHIFT)


class Message(msgspec.Struct, frozen=True, array_like=True, eq=False, forbid_unknown_fields=True):
    """The base of all messages.

    A queued kind is read as a stream, in the order of arrival; any other kind waits in the mailbox
    until somebody asks for its tag.
    """

    queued: ClassVar[bool] = False
    relayed: ClassVar[bool] = False
    """Whether it may travel through other parties (`net.relay`): all who pass it on may read it."""
    personal: ClassVar[bool] = False
    """Whether it is for one receiver alone, who lacks the words that hide it from others: never broadcast."""


class Hello(Message, frozen=True, tag=0):
    """The first message to every peer: the sender's version, its job, and its key for this run, signed."""

    version: str
    job: str
    public_key: bytes
    signature: bytes


class Coin(Message, frozen=True, tag=90):
    """A commitment to a random number, from which together with all others a graph of masks will follow."""

    commitment: bytes


class CoinShown(Message, frozen=True, tag=91):
    """The random number, and a digest of all commitments that the sender has seen."""

    value: bytes
    seen: bytes


class Piece(Message, frozen=True, tag=1):
    """One party's addend of a sum, sent to the root."""

    tag: int
    values: Numbers


class Branch(Message, frozen=True, tag=2):
    """A partial sum in one of the two trees of the papers' secure sum, sent to the next node."""

    tag: int
    tree: int
    node: int
    values: Numbers


class Backward(Message, frozen=True, tag=3):
    """theta = dL/dz of the rows that belong to `tag`, sent by their dominator to every party.

    `seen` are how many rounds of every dominator the sender had finished, where each has its own pace.
    """

    queued: ClassVar[bool] = True
    relayed: ClassVar[bool] = True
    tag: int
    theta: Numbers
    seen: tuple[int, ...] = ()


class Announce(Message, frozen=True, tag=4):
    """A few public numbers that every party must use alike, e.g. the step that tuning found."""

    tag: int
    values: Numbers


class Stop(Message, frozen=True, tag=5):
    """Ends training early, since the target is reached: rounds from `at` on are not computed."""

    queued: ClassVar[bool] = True
    at: int


class Enough(Message, frozen=True, tag=31):
    """Says how many rounds of every dominator there are until a pause, the `tag`-th, or until the end."""

    queued: ClassVar[bool] = True
    tag: int
    counts: tuple[int, ...]
    last: bool


class Abort(Message, frozen=True, tag=6):
    """Ends the run, since the sender cannot go on: the name of its error class, and the text."""

    error: str
    reason: str


class Bye(Message, frozen=True, tag=7):
    """Says that the sender has finished: that its line goes silent now is not a fault."""


class Relay(Message, frozen=True, tag=8):
    """A message of `origin` on its way down a tree; the receiver passes it on to those `below`.

    Parties are given by their places among all parties of the run.
    """

    origin: int
    below: bytes
    payload: bytes


class Upload(Message, frozen=True, tag=20):
    """A client's outputs for a batch: [vectors, rows, outputs], its own parameters first.

    `tag` is the number of the client's round; everybody derives its rows from that.
    """

    queued: ClassVar[bool] = True
    tag: int
    outputs: Numbers


class Reply(Message, frozen=True, tag=21):
    """The server's answer to an upload; nothing in `values` says that the run is over.

    `answered` counts the answers of the run so far, from which every client knows how far it has come.
    """

    tag: int
    answered: int
    values: Numbers


class Embeddings(Message, frozen=True, tag=22):
    """A client's outputs for a stretch of its rows: the first pass, and what evaluation asks for."""

    tag: int
    outputs: Numbers


class Measure(Message, frozen=True, tag=23):
    """The server asks a client for its outputs, to measure the model: of all training rows, in the end of
    test rows."""

    queued: ClassVar[bool] = True
    tag: int
    final: bool


class Decay(Message, frozen=True, tag=10):
    """Ends a round of the kernel conversation: earlier coefficients decay, later rounds may begin."""

    queued: ClassVar[bool] = True
    relayed: ClassVar[bool] = True
    tag: int


class Ask(Message, frozen=True, tag=30):
    """Asks every party for its share of the scores of the sender's batch `tag`."""

    queued: ClassVar[bool] = True
    tag: int


class Roster(Message, frozen=True, tag=46):
    """Sent before alignment: how many ids the sender has and needs, and a commitment to them."""

    size: int
    minimum: int
    commitment: bytes
    rules: str


class Points(Message, frozen=True, tag=47):
    """Blinded ids, the answers to them, or a public key: points of the curve, 65 bytes each."""

    tag: int
    points: Numbers


class Hints(Message, frozen=True, tag=48):
    """A part of the table from which the leader reads a share of zero for an id both hold."""

    tag: int
    seed: int
    table: Numbers


class Found(Message, frozen=True, tag=49):
    """Some of the `total` ids that are common to all, each as the receiver's own keyed hash of it."""

    tag: int
    total: int
    names: Numbers


class Seal(Message, frozen=True, tag=50):
    """The digest of the common rows in their common order."""

    digest: bytes


class Present(Message, frozen=True, tag=51):
    """The first message on a line between two daemons: the sender's version."""

    version: str


class Propose(Message, frozen=True, tag=52):
    """Asks for a run, training or scoring, exactly as `terms` say."""

    queued: ClassVar[bool] = True
    run: int
    terms: bytes


class Answer(Message, frozen=True, tag=53):
    """Says whether the sender takes part; `digest` is that of the terms as it read them."""

    queued: ClassVar[bool] = True
    run: int
    digest: str
    refusal: str | None


class Begin(Message, frozen=True, tag=54):
    """Starts a run, since everybody has accepted these terms."""

    queued: ClassVar[bool] = True
    run: int
    digest: str


class Cancel(Message, frozen=True, tag=55):
    """Says that the run does not take place, or ends now."""

    queued: ClassVar[bool] = True
    run: int
    reason: str


class Progress(Message, frozen=True, tag=56):
    """Says how far a run has come at the party that measures it; the loss only where the job shows it."""

    queued: ClassVar[bool] = True
    run: int
    epoch: int
    loss: float | None


class Score(Message, frozen=True, tag=57):
    """Asks for the scores of these rows of the common order; no rows end the session."""

    queued: ClassVar[bool] = True
    tag: int
    rows: Numbers


class Pending(Message, frozen=True, tag=58):
    """Says that an operator is asked about a proposed run, who has so many seconds.

    The party that is asked tells the proposer, and the proposer those who have accepted already.
    """

    queued: ClassVar[bool] = True
    run: int
    seconds: float


class AskShare(Message, frozen=True, tag=59):
    """Asks whether the receiver holds its share of a model; `number` comes back with the answer."""

    queued: ClassVar[bool] = True
    number: int
    model: str


class HaveShare(Message, frozen=True, tag=60):
    """What the sender holds of a model: the digests of its job and of its common rows, or why it has none."""

    queued: ClassVar[bool] = True
    number: int
    digest: str
    alignment: str
    refusal: str | None


class CutOff(Message, frozen=True, tag=65):
    """Beside the runs: a run was cut off at the sender, in this session.

    With session 0 the sender asks what became of the run: it was started anew.
    """

    queued: ClassVar[bool] = True
    run: int
    session: int
    reason: str


class Rejoin(Message, frozen=True, tag=66):
    """Beside the runs, from the proposer: go on with a run, in a new session with new keys."""

    queued: ClassVar[bool] = True
    run: int
    session: int
    digest: str


class Rejoined(Message, frozen=True, tag=67):
    """The answer: the sender listens and has the common rows or not; or why it cannot go on now."""

    queued: ClassVar[bool] = True
    run: int
    session: int
    aligned: bool
    refusal: str | None


class GoOn(Message, frozen=True, tag=68):
    """Beside the runs, from the proposer: all listen; common rows are those of before, or found anew."""

    queued: ClassVar[bool] = True
    run: int
    session: int
    aligned: bool


class Settled(Message, frozen=True, tag=69):
    """Beside the runs: a run is over at the sender, which has kept its share, or has none and says why."""

    queued: ClassVar[bool] = True
    run: int
    kept: bool
    reason: str


class Sealing(Message, frozen=True, tag=61):
    """The label holder's key for this conversation, and how many rows it will seal the labels of."""

    public: bytes
    rows: int


class SealedLabels(Message, frozen=True, tag=62):
    """Labels of a stretch of rows that can be added up but not read (`secure.elgamal`)."""

    tag: int
    sealed: Numbers


class Tally(Message, frozen=True, tag=63):
    """Every bin of a party's columns: how many bins a column has, how many of them have an order, whether
    the others are categories; the rows of every bin, and its sealed count of labels."""

    bins: Numbers
    ordered: Numbers
    chained: Numbers
    rows: Numbers
    sealed: Numbers


class Evidence(Message, frozen=True, tag=64):
    """The answer to a tally: which bins are joined, the WOE of every bin, the IV of every column."""

    group: Numbers
    woe: Numbers
    iv: Numbers


class Bins(Message, frozen=True, tag=70):
    """How many bins each of the sender's columns has, and whether one more is for gaps.

    `rises` says of every column whether scores may only rise with it, 1, or only fall, -1, or both, 0.
    """

    ordered: Numbers
    gaps: Numbers
    rises: Numbers


class Gradients(Message, frozen=True, tag=71):
    """What a tree learns from: first and second derivatives of its rows, or nothing for who sits it out.

    `kept` ends the run: so many of the receiver's splits are in the trees that are kept.
    """

    tag: int
    words: Numbers
    kept: int | None = None
    deals: tuple[
        int, ...
    ] = ()  # the places of parties for which the receiver deals words, if labels are blind
    turn: tuple[int, ...] = ()  # and of those that take part in the tree


class Histograms(Message, frozen=True, tag=72):
    """The sums that a level of a tree needs of the sender's columns; and all the bytes that it has sent."""

    tag: int
    sums: Numbers
    spots: Numbers  # where labels are blind: bins of rows, then sides, in an order unknown to the receiver
    sent: int


class Divide(Message, frozen=True, tag=73):
    """What becomes of the open nodes of a tree: who splits each, and which children stay open.

    Of the nodes that the receiver splits: by which column, after which bin, and where gaps go.
    """

    tag: int
    party: Numbers
    column: Numbers
    bin: Numbers
    gaps_left: Numbers
    stays: Numbers


class Sides(Message, frozen=True, tag=74):
    """Which rows of the nodes that the sender splits go left: a bit each, node after node."""

    tag: int
    left: Numbers


class Outcomes(Message, frozen=True, tag=75):
    """Which of some rows go left in every split of the sender, of all trees: a bit each."""

    tag: int
    left: Numbers


class Grown(Message, frozen=True, tag=76):
    """The receiver's own trees with their leaves, where every tree uses one party's columns alone.

    How many nodes each tree has and which class it is of; then of all nodes the number of the split, the two
    children and the score.
    """

    nodes: Numbers
    kind: Numbers
    split: Numbers
    left: Numbers
    right: Numbers
    value: Numbers


class Shuffled(Message, frozen=True, tag=77):
    """What a dealer makes of random words for one column of a tree (`conversations/boost/blind`)."""

    personal: ClassVar[bool] = True
    tag: int
    words: Numbers


class Rest(Message, frozen=True, tag=78):
    """A piece of a message of trees that is longer than a message can be (`conversations/boost/long`)."""

    tag: int
    values: Numbers


class Veiled(Message, frozen=True, tag=80):
    """Columns of a stretch of rows minus words that the label holder does not know (`secure.product`)."""

    personal: ClassVar[bool] = True
    tag: int
    values: Numbers


class Veil(Message, frozen=True, tag=81):
    """What the label holder adds and its part of the weights, minus words that an owner does not know.

    `version` is how many changes that part of the weights has in it.
    """

    personal: ClassVar[bool] = True
    tag: int
    moved: Numbers
    weights: Numbers
    version: int = 0


class Dealt(Message, frozen=True, tag=82):
    """What a dealer makes of random words, plus words that the label holder does not know."""

    personal: ClassVar[bool] = True
    tag: int
    values: Numbers


class Unveil(Message, frozen=True, tag=83):
    """The label holder's part of an owner's weights, once training is over, and the unit it is counted in."""

    personal: ClassVar[bool] = True
    tag: int
    values: Numbers
    unit: float


AnyMessage = (
    Ask | Hello | Coin | CoinShown
    | Piece | Branch | Backward | Announce | Stop | Enough | Abort | Bye | Decay | Relay
    | Upload | Reply | Embeddings | Measure
    | Roster | Points | Hints | Found | Seal | Present | Propose | Answer | Begin | Cancel | Progress | Score
    | Pending | AskShare | HaveShare | CutOff | Rejoin | Rejoined | GoOn | Settled
    | Sealing | SealedLabels | Tally | Evidence
    | Bins | Gradients | Histograms | Divide | Sides | Outcomes | Grown | Shuffled | Rest
    | Veiled | Veil | Dealt | Unveil
)  # fmt: skip

# a dtype is one byte on the wire; what is not in this list cannot be sent
_DTYPES = tuple(np.dtype(code) for code in ("<f8", "<u8", "<f4", "<i8", "<u4", "<i4", "<u2", "u1"))
_CODES = {dtype: code for code, dtype in enumerate(_DTYPES)}


def _pack(value: object) -> object:
    """An array in a form that msgpack has."""
    if isinstance(value, np.ndarray):
        if value.dtype == np.uint8 and value.ndim == 1:
            return np.ascontiguousarray(value).data  # packed bytes need no type and no shape
        return _CODES[value.dtype], value.shape, np.ascontiguousarray(value).data
    raise TypeError(f"a {type(value).__name__} cannot be sent")


def _unpack(_: type, value: Any) -> Numbers:
    """The array that `_pack` made this of. The value may be anything: `decode` catches what fails."""
    if isinstance(value, bytes):
        return np.frombuffer(value, dtype=np.uint8)
    code, shape, data = value
    if code < 0 or min(shape, default=0) < 0:
        raise ValueError(f"no array has type code {code} and shape {shape}")
    array = np.frombuffer(data, dtype=_DTYPES[code])
    # bytes cannot be changed, so neither can an array that was received
    return array if len(shape) == 1 and shape[0] == array.size else array.reshape(shape)


_encoder = msgspec.msgpack.Encoder(enc_hook=_pack)
_decoder: msgspec.msgpack.Decoder[AnyMessage] = msgspec.msgpack.Decoder(AnyMessage, dec_hook=_unpack)


def encode(message: Message) -> bytes:
    """The bytes of a message."""
    return _encoder.encode(message)


def decode(data: bytes | memoryview) -> AnyMessage:
    """The message in `data`. Raises MalformedMessage if there is none, and nothing else."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, ValueError, TypeError, IndexError, OverflowError, RecursionError) as error:
        raise MalformedMessage(f"a message of {len(data)} bytes does not decode: {error}") from error
