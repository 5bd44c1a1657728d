"""What a job is: one TOML file that every party reads the same way.

The sections below are the whole language. Unknown keys, wrong types and combinations that cannot work
are refused when the job is read, in one line that says where and how to put it right.
"""

from __future__ import annotations

import difflib
import hashlib
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from colonnade.errors import JobError

World = Literal["simulated", "local", "network"]
Device = Literal["cpu", "cuda", "auto"]


SERVER = "server"  # the name of a party that is nothing else


def numbered_parties(parties: int) -> tuple[str, ...]:
    """Names for parties that are only counted.

    >>> numbered_parties(11)[:2]
    ('party-00', 'party-01')
    """
    digits = len(str(parties - 1))
    return tuple(f"party-{k:0{digits}}" for k in range(parties))


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the job file."""


class Data(Section, frozen=True):
    """Where the columns come from, who holds which, and how each party prepares its own."""

    train: str | None = None
    test: str | None = None
    test_fraction: float = 0.2
    label: str | None = None
    id: str | None = None
    positive: list[str | int | float] | None = None
    parties: int | None = None
    columns: dict[str, list[str]] | None = None
    files: dict[str, str] | None = None
    test_files: dict[str, str] | None = None
    active: int | list[str] = 1
    server: Literal["apart"] | None = None  # with `parties`: one more, which holds the label and no columns
    scale: Literal["none", "zscore", "minmax", "maxabs"] | None = None
    categorical: list[str] | None = None
    missing: Literal["error", "zero", "mean"] | None = None
    drop: list[str] | None = None
    intercept: bool | None = None  # a column of ones at the first active party; None: where it is needed

    @property
    def party_names(self) -> tuple[str, ...]:
        """The names of all parties, in the order of network.speeds.

        >>> Data(parties=2, server="apart").party_names
        ('server', 'party-0', 'party-1')
        """
        if (named := self.columns or self.files) is not None:
            return tuple(named)
        return ((SERVER,) if self.server == "apart" else ()) + numbered_parties(self.parties or 0)


class Train(Section, frozen=True):
    """The objective and how it is minimised."""

    epochs: int = 10
    batch: int = 256
    step: float | Literal["auto"] = "auto"
    l2: float = 1e-4
    loss: Literal["logistic", "squared", "smooth_hinge", "softmax"] | None = None
    regularizer: Literal["l2", "nonconvex"] = "l2"
    ahead: int | None = None
    max_delay: int | None = None
    stale: int | None = None  # rounds more that a party may score ahead while it is behind the others
    threads: int = 1
    reshuffle: bool = True  # rows for every epoch; false: one order for all, and no copy of the rows an epoch
    target: float | None = None
    evaluate_every: int | float = 1  # epochs; but for pull, gram and kernel also a part of one
    estimator: Literal["sgd", "svrg", "saga"] | None = None
    direction: Literal["plain", "lbfgs"] | None = None
    labels_at: int | None = None
    classes: int | None = None


class Direction(Section, frozen=True):
    """The quasi-Newton direction, where the algorithm has one."""

    pairs: Literal["joint", "hvp", "batch", "paper"] | None = None
    memory: int = 40
    every: int | None = None  # rounds between two pairs
    delta: float = 0.05
    step: float | Literal["auto"] = "auto"


class Secure(Section, frozen=True):
    """How partial scores are summed."""

    sum: Literal["masked", "tree", "plain"] = "masked"
    accept_leak: bool = False


class Cascade(Section, frozen=True):
    """How the cascade conversation asks and answers."""

    directions: int = 4
    smoothing: Literal["gaussian", "sphere", "rademacher"] | None = None
    mu: float = 1e-3
    two_sided: bool = False
    per: Literal["batch", "sample"] | None = None  # of deltas: one number a direction, or one a row too
    server: Literal["zeroth", "first"] = "zeroth"
    server_step: float | Literal["auto"] = "auto"
    decay: Literal["linear", "none"] = "linear"
    precision: Literal["float32", "float64"] = "float32"
    forward_bits: Literal[1, 2, 4, 8, 32] | None = None  # of a client's outputs; 32: as `precision` says
    backward_bits: Literal[1, 2, 4, 8, 32] | None = None  # of the server's replies
    forward_range: Literal["message", "column"] = "message"
    forward_top: float | None = None  # only the largest changes: a part (0.1) or a number (400) of a message
    backward_top: float | None = None  # the same of gradient replies
    local_steps: int | None = None  # of a client, for every reply
    optimizer: str = "sgd"  # of clients and server; or one of torch.optim: adam, adamw, rmsprop, ...
    optimizer_options: dict[str, bool | int | float | list[float]] = {}


class Model(Section, frozen=True):
    """One model: what it is made of, or where it comes from."""

    kind: Literal["linear", "mlp", "cnn", "torch", "function", "program"] = "linear"
    outputs: int = 1
    hidden: tuple[int, ...] = (128,)  # of an mlp
    shape: tuple[int, int, int] | None = None  # of a cnn: a row is an image of [colours, height, width]
    channels: tuple[int, ...] = (32, 64)  # of a cnn, one for every halving of the image
    path: str | None = None
    command: list[str] | None = None
    parameters: int | None = None


class ServerModel(Section, frozen=True):
    """F0, the server's model on top of all embeddings."""

    kind: Literal["sum", "linear", "mlp", "torch", "function", "program"] = "sum"
    hidden: tuple[int, ...] = (128,)
    path: str | None = None
    command: list[str] | None = None
    parameters: int | None = None


class Models(Model, frozen=True):
    """The model of every party, those of single parties, and the server's."""

    parties: dict[str, Model] = {}
    server: ServerModel = ServerModel()
    device: Device = "cpu"  # where networks compute; auto: on the machine's GPU, if torch sees one


class PrivacyTerms(Section, frozen=True):
    """What may be given away about a label, in total: noise on replies, or on the labels before training."""

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
    partitions: list[dict[str, Any]] = []
    crash: dict[str, float] = {}


class Net(Section, frozen=True):
    """Links and machines of the simulated world; transport and deadlines of the real one."""

    latency_ms: float = 0.0
    bandwidth_mbps: float | None = None
    speeds: list[float] | None = None
    ns_per_value: float = 1.0
    us_per_call: float = 20.0
    charge_forward: bool = True
    join: bool = True  # rounds that are open together are one product, thetas that wait one update
    work_ms: float = 0.0  # network world: a pause for every update, over the party's speed
    faults: FaultPlan = FaultPlan()
    transport: Literal["tls", "grpc"] = "tls"
    deadline_s: float = 60.0


class Kernel(Section, frozen=True):
    """The kernel conversation: which kernel, how many random features, and what is kept."""

    kind: Literal["gaussian", "laplace"] = "gaussian"
    sigma: float | Literal["median"] = "median"
    fraction: float | Literal["auto"] = "auto"  # of the median distance; auto: the best on a sample
    features: int | Literal["auto"] = "auto"
    block: int = 256
    step: Literal["falling", "constant"] = "falling"
    momentum: float = 0.9  # once there are no new features
    omega: Literal["private", "shared"] = "private"
    cache: bool = True


# what an algorithm takes where the job is silent and the usual value would not do
DEFAULTS: dict[str, dict[str, dict[str, Any]]] = {
    "fdskl": {"train": {"epochs": 40}},
    "czofo": {"cascade": {"directions": 100}},
    "czofo-central": {"cascade": {"directions": 100}},
    "vafl-dp": {"privacy": {"mechanism": "gradient"}},
}


class Job(Section, frozen=True, kw_only=True):
    """Everything the parties agree on."""

    algorithm: str
    world: World = "local"
    seed: int = 0
    data: Data
    train: Train = Train()
    direction: Direction = Direction()
    secure: Secure = Secure()
    network: Net = Net()
    kernel: Kernel = Kernel()
    cascade: Cascade = Cascade()
    model: Models = Models()
    privacy: PrivacyTerms = PrivacyTerms()

    def digest(self) -> str:
        """Two parties that hold the same digest mean the same job."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()


def read_toml(path: Path, absent: str) -> dict[str, Any]:
    """The tables of a TOML file; `absent` is what to say where there is none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise JobError(f"{path}: {absent}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise JobError(f"{path}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise JobError(f"{path}: not valid TOML: {error}") from error


def read_job(path: Path) -> Job:
    """The job in a TOML file; relative data paths are taken from the file's own folder."""
    plain = read_toml(path, "there is no such job file")
    job = job_from(plain, where=str(path))
    folder = path.resolve().parent
    return msgspec.structs.replace(
        job, data=_rooted(job.data, folder), model=_rooted_models(job.model, folder)
    )


def job_from(plain: dict[str, Any], where: str = "job") -> Job:
    """A job from plain dictionaries, with every mistake named."""
    refuse_unknown(plain, Job, where)
    try:
        job = msgspec.convert(with_defaults(plain), Job)
    except msgspec.ValidationError as error:
        raise JobError(f"{where}: {readable(str(error))}") from error
    _check(job, where)
    return job


def with_defaults(plain: dict[str, Any]) -> dict[str, Any]:
    """A job's tables with what its algorithm takes where they are silent."""
    full = dict(plain)
    for section, defaults in DEFAULTS.get(str(plain.get("algorithm")), {}).items():
        if isinstance(given := plain.get(section, {}), dict):
            full[section] = defaults | given
    return full


def refuse_unknown(plain: Any, kind: type[Section], where: str, path: str = "") -> None:
    if not isinstance(plain, dict):
        return
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    for key, value in plain.items():
        if key not in fields:
            near = difflib.get_close_matches(key, fields, n=1)
            hint = (
                f"; did you mean {path}{near[0]!s}?" if near else f"; known here: {', '.join(sorted(fields))}"
            )
            raise JobError(f"{where}: unknown key {path}{key}{hint}")
        inner = fields[key]
        if isinstance(inner, type) and issubclass(inner, Section):
            refuse_unknown(value, inner, where, f"{path}{key}.")


def readable(text: str) -> str:
    """msgspec's own words, with the place in the job's notation: `$.train.batch` is train.batch."""
    what, _, place = text.partition(" - at `$")
    if not place:
        return what
    return f"{place.rstrip('`').lstrip('.')}: {what[0].lower()}{what[1:]}"


def _check(job: Job, where: str) -> None:
    def refuse(text: str) -> None:
        raise JobError(f"{where}: {text}")

    data, train, net = job.data, job.train, job.network
    if job.seed < 0:
        refuse(f"seed: {job.seed} is negative; give 0 or more")
    sources = [key for key in ("train", "files") if getattr(data, key) is not None]
    if len(sources) != 1:
        refuse("data: give either train = FILE (split into columns here) or files = {PARTY = FILE, ...}")
    splits = [key for key in ("parties", "columns", "files") if getattr(data, key) is not None]
    if len(splits) != 1:
        refuse(
            "data: say who holds which columns by exactly one of parties = N, columns = {...}, files = {...}"
        )
    if data.files is not None and data.test is not None:
        refuse("data.test: with files = {...} the test rows come from test_files = {PARTY = FILE, ...}")
    if data.files is None and data.test_files is not None:
        refuse("data.test_files: goes with files = {...}; with train = FILE give test = FILE")
    if data.parties is not None and data.parties < 1:
        refuse(f"data.parties: {data.parties} parties cannot hold anything; at least 1")
    if data.server is not None and data.parties is None:
        refuse(
            "data.server: goes with parties = N; with columns or files name the server among the parties, "
            "columns = {server = [], ...} or a file with nothing but id and label, and active = ['server']"
        )
    q = len(data.party_names)
    if q > 255:
        refuse(f"data: {q} parties are more than a run can name; at most 255")
    if isinstance(data.active, int) and not 1 <= data.active <= q:
        refuse(f"data.active: {data.active} of {q} parties cannot be active; give 1 to {q}")
    if not 0 < data.test_fraction < 1:
        refuse(f"data.test_fraction: {data.test_fraction} is not between 0 and 1")
    for key, value in (("epochs", train.epochs), ("batch", train.batch), ("threads", train.threads)):
        if value < 1:
            refuse(f"train.{key}: {value} is not a positive number")
    if train.ahead is not None and train.ahead < 1:
        refuse(f"train.ahead: {train.ahead} is not a positive number of batches in flight")
    if train.evaluate_every < 0:
        refuse("train.evaluate_every: give epochs between evaluations, or 0 for the end only")
    if isinstance(train.step, float) and not 0 < train.step < float("inf"):
        refuse(f"train.step: {train.step} is not a positive number")
    if not 0 <= train.l2 < float("inf"):
        refuse(f"train.l2: {train.l2} is not a number >= 0")
    if train.max_delay is not None and train.max_delay < 0:
        refuse(f"train.max_delay: {train.max_delay} is not a number of updates >= 0")
    if train.target is not None and not train.target > 0:
        refuse(f"train.target: {train.target} is not a positive sub-optimality")
    _check_direction(job.direction, refuse)
    if train.classes is not None and train.classes < 2:
        refuse(f"train.classes: {train.classes} is less than two")
    _check_cascade(job, refuse)
    bandwidth = 1.0 if net.bandwidth_mbps is None else net.bandwidth_mbps
    if not (net.latency_ms >= 0 and bandwidth > 0 and net.deadline_s > 0):  # also catches NaN
        refuse("network: latency_ms must be >= 0, bandwidth_mbps and deadline_s must be > 0")
    if not (net.ns_per_value >= 0 and net.us_per_call >= 0):
        refuse("network: ns_per_value and us_per_call must be >= 0")
    if not net.work_ms >= 0:
        refuse(f"network.work_ms: {net.work_ms} is not a number of milliseconds >= 0")
    kernel = job.kernel
    for key, number in (("block", kernel.block), ("features", kernel.features)):
        if isinstance(number, int) and number < 1:
            refuse(f"kernel.{key}: {number} is not a positive number of random features")
    if isinstance(kernel.sigma, float) and not 0 < kernel.sigma < float("inf"):
        refuse(f"kernel.sigma: {kernel.sigma} is not a positive bandwidth")
    if not 0 <= kernel.momentum < 1:
        refuse(f"kernel.momentum: {kernel.momentum} is not a number from 0 to below 1")
    if kernel.fraction != "auto" and not 0 < kernel.fraction < float("inf"):
        refuse(f"kernel.fraction: {kernel.fraction} is not a positive part of the median distance")
    if net.speeds is not None and not (len(net.speeds) == q and all(speed > 0 for speed in net.speeds)):
        refuse(f"network.speeds: give one positive speed for each of the {q} parties")
    for key in ("drop", "duplicate", "corrupt", "delay"):
        if not 0 <= (chance := getattr(net.faults, key)) < 1:
            refuse(f"network.faults.{key}: {chance} is not a chance from 0 to below 1")
    if any(set(cut) != {"start", "end", "side"} for cut in net.faults.partitions):
        refuse("network.faults.partitions: give each as {start = S, end = S, side = [PARTY, ...]}")


def _check_direction(direction: Direction, refuse: Callable[[str], None]) -> None:
    for key, number in (("memory", direction.memory), ("every", direction.every)):
        if number is not None and number < 1:
            refuse(f"direction.{key}: {number} is not a positive number")
    for key, value in (("delta", direction.delta), ("step", direction.step)):
        if isinstance(value, float) and not 0 < value < float("inf"):
            refuse(f"direction.{key}: {value} is not a positive number")


def _check_cascade(job: Job, refuse: Callable[[str], None]) -> None:
    cascade, privacy = job.cascade, job.privacy
    if cascade.directions < 1 or not 0 < cascade.mu < float("inf"):
        refuse("cascade: directions must be at least 1 and mu a positive number")
    for key, top in (("forward_top", cascade.forward_top), ("backward_top", cascade.backward_top)):
        if top is not None and not (0 < top < 1 or (top >= 1 and top == int(top))):
            refuse(f"cascade.{key}: {top:g} is neither a part between 0 and 1 nor a whole number")
    if cascade.local_steps is not None and cascade.local_steps < 1:
        refuse(f"cascade.local_steps: {cascade.local_steps} is not a positive number")
    if isinstance(cascade.server_step, float) and not 0 < cascade.server_step < float("inf"):
        refuse(f"cascade.server_step: {cascade.server_step} is not a positive number")
    models: dict[str, Model | ServerModel] = {
        "model": job.model,
        "model.server": job.model.server,
        **job.model.parties,
    }
    for name, model in models.items():
        _check_model(model, name, refuse)
    if privacy.mechanism != "none" and (privacy.epsilon is None or privacy.epsilon <= 0):
        refuse(f"privacy.epsilon: mechanism = {privacy.mechanism!r} needs a positive epsilon")
    if not 0 < privacy.delta < 1 or privacy.clip <= 0:
        refuse("privacy: delta must be between 0 and 1, clip must be > 0")


def _check_model(model: Model | ServerModel, name: str, refuse: Callable[[str], None]) -> None:
    needs = {"function": "path", "torch": "path", "program": "command"}.get(model.kind)
    if needs and not getattr(model, needs):
        example = '"mine.py:scores"' if needs == "path" else '["awk", "-f", "mine.awk"]'
        refuse(f"{name}: kind = {model.kind!r} needs {needs} = {example}")
    if model.kind == "function" and (model.parameters is None or model.parameters < 0):
        refuse(f"{name}: kind = 'function' needs parameters = N, the length of its parameter vector")
    if isinstance(model, Model):
        _check_images(model, name, refuse)


def _check_images(model: Model, name: str, refuse: Callable[[str], None]) -> None:
    if (model.kind == "cnn") != (model.shape is not None):
        refuse(f"{name}: shape = [colours, height, width] goes with kind = 'cnn', which needs it")
    if not model.channels or min(model.channels) < 1:
        refuse(f"{name}.channels: {list(model.channels)}; give a positive number for every convolution")
    colours, *sizes = model.shape or (1, 2 ** len(model.channels))
    if min(colours, *(size >> len(model.channels) for size in sizes)) < 1:
        refuse(
            f"{name}: an image of {[colours, *sizes]} cannot be halved {len(model.channels)} times; "
            "give fewer channels"
        )


def _rooted_models(models: Models, folder: Path) -> Models:
    """Programs and Python files named in a job lie beside it."""

    def beside(word: str) -> str:
        return str(folder / word) if not Path(word).is_absolute() and (folder / word).is_file() else word

    def rooted(model: Any) -> Any:
        path, command = model.path, model.command
        if path and ":" in path:
            file, _, name = path.rpartition(":")
            path = f"{beside(file)}:{name}"
        return msgspec.structs.replace(model, path=path, command=command and [beside(c) for c in command])

    rooted_models: Models = msgspec.structs.replace(
        rooted(models),
        server=rooted(models.server),
        parties={party: rooted(model) for party, model in models.parties.items()},
    )
    return rooted_models


def _rooted(data: Data, folder: Path) -> Data:
    """File names in a job are relative to the job; names of data sets stay as they are."""

    def rooted(name: str) -> str:
        path = Path(name)
        return str(folder / path) if not path.is_absolute() and (folder / path).exists() else name

    return msgspec.structs.replace(
        data,
        train=rooted(data.train) if data.train else None,
        test=rooted(data.test) if data.test else None,
        files={party: rooted(name) for party, name in data.files.items()} if data.files else None,
        test_files={party: rooted(name) for party, name in data.test_files.items()}
        if data.test_files
        else None,
    )
