"""The sections of a job file, every key with its type and default; `[data]` is in `data_section`."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import UNSET, UnsetType, field, structs

from colonnade.job.data_section import Data
from colonnade.job.presets import Bits, DirectionName, EstimatorName
from colonnade.job.section import Section

World = Literal["simulated", "local", "network", "mpi"]
LossName: TypeAlias = str  # of the table `losses.LOSSES`; `job.limits` refuses any other
ClassWeight = Literal["balanced"] | dict[str, float] | None
RegularizerName = Literal["l2", "nonconvex"]
SumName: TypeAlias = str  # of the table `secure.sums.SUMS`; `run.rules` refuses any other
Broadcast = Literal["star", "tree"]
LabelsName = Literal["blind", "clear"]
RevealName = Literal["auto", "owner", "never"]
ScoresName = Literal["open", "hidden"]
ProductsName = Literal["dealer", "encrypted", "auto"]
Device = Literal["cpu", "cuda", "auto"]
SamplingName = Literal["passes", "replacement"]


USUAL_BATCH = 256
LEAF_ROWS = 20.0
"""The least rows of a leaf where a loss counts them, as other libraries of trees have it."""


class Train(Section, frozen=True):
    """The objective and how it is minimised."""

    epochs: int = 10
    batch: int | None = None  # the most rows of a batch; None: what suits algorithm and rows
    step: float | Literal["auto"] = "auto"
    l2: float | Literal["auto"] = 1e-4  # auto: 1 / rows; of kernel machines what is best on sampled rows
    l1: float = 0.0
    class_weight: ClassWeight = None  # by label; balanced: all classes weigh the same
    loss: LossName | None = None
    regularizer: RegularizerName = "l2"
    ahead: int | None = None
    max_delay: int | None = None
    stale: int | None = None  # rounds more that a party may score ahead; None: as many as are used
    reshuffle: bool = True  # rows for every epoch; false: one order for all, and no copy of the rows an epoch
    # every batch from all rows, as the papers draw them, or passes over all rows in a random order
    sampling: SamplingName = "passes"
    start: Literal["steps", "all-rows"] = "steps"  # how what SVRG and SAGA remember begins
    target: float | None = None
    tolerance: float | None = None  # the relative fall of the loss an epoch that counts as none; 0: never
    evaluate_every: int | float = 1  # epochs; but for pull, gram and kernel also a part of one
    estimator: EstimatorName | None = None
    direction: DirectionName | None = None
    labels_at: int | None = None
    classes: int | None = None

    def l2_for(self, rows: int) -> float:
        """Return lambda for this number of training rows."""
        return 1 / rows if self.l2 == "auto" else self.l2


class EngineTerms(Section, frozen=True):
    """Who computes inside a party: this process, or workers beside it. No other party is concerned."""

    kind: Literal["inline", "processes", "ray", "mpi"] = "inline"
    workers: int | None = None  # None: as many as the machine has processors


HERE = EngineTerms()


class Direction(Section, frozen=True):
    """The quasi-Newton direction, where the algorithm has one."""

    pairs: Literal["joint", "hvp", "batch", "paper"] | None = None
    memory: int = 40
    every: int | None = None  # rounds between two pairs
    delta: float = 0.05
    step: float | Literal["auto"] = "auto"


class Secure(Section, frozen=True):
    """How partial scores are summed, and who may work out labels."""

    sum: SumName = "masked"
    neighbours: int | Literal["auto"] | None = None  # parties that share masks with each; None: all others
    accept_leak: bool = False
    labels: LabelsName | None = None  # who learns what the labels follow from: none but their holder, or all
    helper: str | None = None  # the party that deals random words where labels are blind
    reveal: RevealName = "owner"  # who learns the weights of a blind run in the end
    scores: ScoresName = "open"  # whether the label holder of a blind run learns total scores in training
    products: ProductsName = "auto"  # of blind runs: by words of a third party, or of two under encryption
    noise: float | None = None  # of encrypted products: rows of noise in gradients that are told; None: 3
    epsilon: float | None = None  # instead, as much noise as lets a run tell no more of a label
    proofs: int = 0  # random measurements before weights are told, which a wrong dealer does not pass
    few_rows: bool = False  # encrypted between companies though few rows let own weights tell of labels


class Cascade(Section, frozen=True):
    """What clients of a cascade ask, what the server answers, and how both learn from it."""

    directions: int = 4
    smoothing: Literal["gaussian", "sphere", "rademacher"] | None = None
    mu: float = 1e-3
    two_sided: bool = False
    per: Literal["batch", "sample"] | None = None  # of deltas: one number a direction, or one a row too
    shared_bases: bool = True  # of the directions of a batch; false: every row's are independent
    server: Literal["zeroth", "first"] = "zeroth"
    server_step: float | Literal["auto"] = "auto"
    assumed_delay: int | Literal["bound"] | None = None  # the step of AsyREVEL's theorems for it
    decay: Literal["linear", "none"] = "linear"
    precision: Literal["float32", "float64"] = "float32"
    forward_bits: Bits | None = None  # of a client's outputs; 32: as `precision` says
    backward_bits: Bits | None = None  # of the server's replies
    forward_range: Literal["message", "column"] = "message"
    forward_rounding: Literal["chance", "nearest"] = "chance"  # of a client's outputs in few bits
    forward_memory: bool | None = None  # in few bits: what rounding lost is sent when the row comes back
    forward_top: float | None = None  # only the largest changes: a part (0.1) or a number (400) of a message
    backward_top: float | None = None  # the same of gradient replies
    local_steps: int | None = None  # c-vfl: of everybody on a batch, before outputs are sent again
    optimizer: str = "sgd"  # of clients and server; or one of torch.optim: adam, adamw, rmsprop, ...
    optimizer_options: dict[str, bool | int | float | list[float]] = field(default_factory=dict)


class ModelSpec(Section, frozen=True):
    """One model: what it is made of, or where it comes from."""

    kind: Literal["linear", "mlp", "cnn", "torch", "function", "program"] = "linear"
    outputs: int | None = None  # numbers a row; None: one for every score
    hidden: tuple[int, ...] = (128,)  # of an mlp
    shape: tuple[int, int, int] | None = None  # of a cnn: a row is an image of [colours, height, width]
    channels: tuple[int, ...] = (32, 64)  # of a cnn, one for every halving of the image
    path: str | None = None
    command: list[str] | None = None
    parameters: int | None = None

    @property
    def width(self) -> int:
        """How many numbers a row becomes."""
        return self.outputs or 1


class ServerSpec(Section, frozen=True):
    """F0, the server's model on top of all embeddings."""

    kind: Literal["sum", "linear", "mlp", "torch", "function", "program"] = "sum"
    hidden: tuple[int, ...] = (128,)
    path: str | None = None
    command: list[str] | None = None
    parameters: int | None = None


class ModelSpecs(ModelSpec, frozen=True):
    """The model of every party, those of single parties, and the server's."""

    parties: dict[str, ModelSpec] = field(default_factory=dict)
    server: ServerSpec = ServerSpec()
    device: Device = "cpu"  # where networks compute; auto: on the machine's GPU, if torch sees one

    def of(self, party: str) -> ModelSpec:
        """Return the model of this party."""
        return self.parties.get(party, self)


class PrivacyTerms(Section, frozen=True):
    """How much a run may tell about a label in all, by noise on replies or on labels before training."""

    mechanism: Literal["none", "scalar", "gradient", "labels"] = "none"
    epsilon: float | None = None
    delta: float = 1e-5
    clip: float = 1.0


class FaultPlan(Section, frozen=True):
    """What goes wrong in the simulated world; probabilities are per frame, times in virtual seconds."""

    drop: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0
    delay: float = 0.0
    delay_s: float = 1.0
    partitions: list[dict[str, Any]] = field(default_factory=list)
    crash: dict[str, float] = field(default_factory=dict)


class Net(Section, frozen=True):
    """Links and machines of the simulated world; deadlines of the real one."""

    latency_ms: float = 0.0
    bandwidth_mbps: float | None = None  # of a party's network card, either way
    broadcast: Broadcast = "star"  # how results go to all: from one party, or passed on
    speeds: list[float] | None = None
    processors: int = 1  # of every party; VFB2's threads within a party
    ns_per_value: float = 1.0
    us_per_call: float = 20.0
    us_per_message: float = 0.0  # of computing, at the sender and again at the receiver
    ns_per_byte: float = 0.0  # of a message, in the same way
    charge_forward: bool = True
    join: bool = True  # rounds that are open together are one product, thetas that wait one update
    work_ms: float = 0.0  # network world: so much more computing for every call on columns
    faults: FaultPlan = FaultPlan()
    deadline_s: float = 60.0
    transport: Literal["tls", "grpc"] | UnsetType = UNSET  # gone; jobs and stored plans of 0.2 have it


class Kernel(Section, frozen=True):
    """Which kernel a kernel machine has, how many random features, and how their projections travel."""

    kind: Literal["gaussian", "laplace"] = "gaussian"
    sigma: float | Literal["median"] = "median"
    fraction: float | Literal["auto"] = "auto"  # of the median distance; auto: the best on a sample
    features: int | Literal["auto"] = "auto"  # the cap of fdskl-capped
    block: int | Literal["auto"] = "auto"  # new features of a round
    step: Literal["falling", "constant"] | None = None  # None: constant, as in the paper; with a cap, falling
    momentum: float | None = None  # of fdskl-capped, once there are no new features; None: 0.9
    omega: Literal["private", "shared"] = "private"
    bits: Literal[16, 32] = 16  # of a projection that travels
    cache: bool = True


class Trees(Section, frozen=True):
    """How boosted trees grow, in the words of XGBoost; `train.epochs` are the rounds of boosting."""

    learning_rate: float = 0.1
    max_depth: int = 6
    max_leaves: int = 0  # 0: as many as the depth allows
    # the least sum of second derivatives of a child; auto: LEAF_ROWS where these are rows, else 1, as in 0.2
    min_child_weight: float | Literal["auto"] = 1.0
    gamma: float = 0.0  # the least gain of a split
    reg_lambda: float = 1.0
    subsample: float = 1.0  # of the rows, drawn for every tree
    colsample_bytree: float = 1.0  # of every party's columns
    max_bin: int = 64  # of a column, beside that of gaps
    early_stopping_rounds: int = 0  # without a gain on held-back rows, which end the run; 0: none
    validation_fraction: float = 0.1  # of the training rows that are held back for it
    turns: Literal["gain", "round"] = "gain"  # of boosted-sum: whose columns a tree uses
    # of a row's first derivative, with its sign; 0: as many as there are, and owners tell exact histograms,
    # as in version 0.2. Otherwise the next three say what owners tell of theirs (`trees.told`)
    bits: int = 0
    bin_rows: int = 10  # in a node, below which a bin is joined with its neighbours
    node_rows: int = 40  # below which nothing is told of a node
    noise: float = 0.5  # of every sum: its deviation, in largest derivatives of a row
    categories: Literal["numbers", "sets"] = "numbers"  # how columns of categories are split; 0.2: numbers
    # by column: 1 if scores may only rise with it, -1 if they may only fall
    monotone_constraints: dict[str, int] = field(default_factory=dict)

    def for_loss(self, *, counts_rows: bool) -> Trees:
        """Return the same with a number for `min_child_weight`; `counts_rows` is what the loss says."""
        if self.min_child_weight != "auto":
            return self
        return structs.replace(self, min_child_weight=LEAF_ROWS if counts_rows else Trees().min_child_weight)

    @property
    def least_weight(self) -> float:
        """The least sum of second derivatives of a child, of which a plan says the number."""
        if self.min_child_weight == "auto":
            raise TypeError("trees.min_child_weight is auto, which a plan never is")
        return self.min_child_weight


class Woe(Section, frozen=True):
    """Weight of evidence: how a party bins its columns, and how the label holder joins the bins."""

    bins: int = 20  # quantile bins of a number column, before any are joined
    most: int = 8  # bins that are left of a column
    monotone: bool = False  # bad rates of a number column only rise, or only fall
    least: int = 50  # rows of a bin whose count is shown to the label holder
    cases: int = 10  # goods and bads, each, of a bin whose WOE is shown to its party
    # on counts that a party is told, times the root of its columns; None: what the label holder demands
    noise: float | None = None
    # numbers of a column that mean something else, each with its own bin
    special: dict[str, list[float]] = field(default_factory=dict)


MetricName = Literal["loss", "accuracy", "auc", "rmse", "r2", "d2"]


class Tune(Section, frozen=True):
    """How settings are searched for, on training rows that are held back in turn."""

    trials: int = 20  # settings to try, beside the job as it stands
    folds: int | None = None  # parts of the training rows, each held back once; None: 5
    held_back: float | None = None  # instead of folds: one part of the rows, held back from every training
    metric: MetricName = "loss"
    timeout_s: float | None = None  # no trial begins later than this
    prune: bool = True  # a setting that is worse than most after some folds is left
    epsilon: float | None = None  # what all trainings together may tell about a label
    accept: tuple[str, ...] | None = None  # algorithms that would open more are left out; None: none is
    space: dict[str, Any] = field(
        default_factory=dict
    )  # key -> [choices] or {low, high, log}; none: as suits the algorithm


class Checkpoint(Section, frozen=True):
    """How often parties store the state of a run, to go on from after a crash."""

    every: Literal["auto", "epoch", "never"] | int = "auto"  # epochs; auto: as often as costs next to nothing

    def epochs(self, world: World) -> int | Literal["auto"] | None:
        """Return the epochs between two checkpoints; None if there are none.

        A simulation has some if it is told so; ranks keep no files that would outlive them.
        """
        if self.every == "never" or world == "mpi" or (self.every == "auto" and world == "simulated"):
            return None
        return 1 if self.every == "epoch" else self.every


class Training(Section, frozen=True, kw_only=True):
    """How a model is trained: the sections that every kind of job has, wherever its columns come from."""

    algorithm: str
    seed: int = 0
    value: bool = False  # also say what every party is worth: train every coalition of them
    train: Train = Train()
    direction: Direction = Direction()
    secure: Secure = Secure()
    network: Net = Net()
    kernel: Kernel = Kernel()
    trees: Trees = Trees()
    cascade: Cascade = Cascade()
    privacy: PrivacyTerms = PrivacyTerms()
    woe: Woe = Woe()


class Job(Training, frozen=True, kw_only=True):
    """A whole job: how a model is trained, in which world, on which columns."""

    world: World = "local"
    compare: bool = True  # also fit the same model on all parties' columns together
    data: Data
    model: ModelSpecs = ModelSpecs()
    tune: Tune = Tune()
    checkpoint: Checkpoint = Checkpoint()
    engine: EngineTerms = HERE  # who computes inside every party
