"""What no job may say, with any algorithm: one check for every section of a job.

What an algorithm can be combined with is checked later, in `run.rules` and in the conversation's own record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from colonnade.errors import JobError
from colonnade.job.data_section import Data, memory_of
from colonnade.job.sections import (
    Cascade,
    Checkpoint,
    Direction,
    Job,
    Kernel,
    ModelSpec,
    ModelSpecs,
    Net,
    PrivacyTerms,
    Secure,
    ServerSpec,
    Train,
    Trees,
    Tune,
    Woe,
)

WIDEST = 2**16  # numbers that a model gives for a row

Refuse = Callable[[str], NoReturn]

LEAST_MEMORY = 10**8  # below that there is room for nothing but the program
LEAST, LARGEST = 1e-30, 1e30  # of steps and widths, whose squares and quotients must be numbers, too
LEAST_BITS, MOST_BITS = 3, 8  # of a row's first derivative, in boosted trees
MOST_NOISE = 10  # in largest derivatives of a row
MOST_PROCESSORS = 1024  # of a party on the virtual clock
MOST_BINS = 10_000  # of a column, before any are joined


def check(job: Job, where: str) -> None:
    """Refuse numbers out of range and keys that do not go together, for any algorithm."""

    def refuse(text: str) -> NoReturn:
        raise JobError(f"{where}: {text}")

    if not 0 <= job.seed < 2**63:
        refuse(f"seed: {job.seed} is not a number from 0 to below 2^63")
    _check_data(job.data, refuse)
    _check_secure(job.secure, refuse)
    _check_train(job.train, refuse)
    _check_direction(job.direction, refuse)
    _check_cascade(job.cascade, refuse)
    _check_models(job.model, refuse)
    _check_privacy(job.privacy, refuse)
    _check_network(job.network, len(job.data.party_names), refuse)
    _check_kernel(job.kernel, refuse)
    _check_trees(job.trees, refuse)
    _check_woe(job.woe, refuse)
    _check_tune(job.tune, refuse)
    _check_checkpoint(job.checkpoint, refuse)
    if job.data.woe and job.privacy.mechanism != "none":
        refuse(
            "woe: counts of bins tell about labels what privacy.mechanism promises to hide; drop one of them"
        )


def _check_checkpoint(checkpoint: Checkpoint, refuse: Refuse) -> None:
    if isinstance(checkpoint.every, int) and checkpoint.every < 1:
        refuse(f"checkpoint.every: {checkpoint.every} epochs; give 1 or more, 'epoch', 'auto' or 'never'")


def _check_secure(secure: Secure, refuse: Refuse) -> None:
    given = secure.neighbours
    if isinstance(given, int) and (given < 2 or given % 2):
        refuse(f"secure.neighbours: {given} is not an even number from 2 on, half of them on either side")
    if secure.noise is not None and secure.epsilon is not None:
        refuse("secure.epsilon: says how much noise there is, and so does secure.noise; give one of them")
    if not 0 <= secure.proofs <= 8:
        refuse(f"secure.proofs: {secure.proofs} random measurements; give 0 to 8, two are enough")
    if secure.noise is not None and not 0.25 <= secure.noise <= 1e6:
        refuse(f"secure.noise: {secure.noise:g} rows; from 0.25, below which labels follow from gradients")
    if secure.epsilon is not None and not 1e-3 <= secure.epsilon <= 1e3:
        refuse(f"secure.epsilon: {secure.epsilon:g} is not from 0.001 to 1000")


def _check_data(data: Data, refuse: Refuse) -> None:
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
    if isinstance(data.id, dict) and set(data.id) != set(data.files or ()):
        refuse("data.id: id.PARTY = COLUMN goes with files.PARTY = FILE; give both for every party")
    if data.files is None and data.test_files is not None:
        refuse("data.test_files: goes with files = {...}; with train = FILE give test = FILE")
    if data.parties is not None and data.parties < 1:
        refuse(f"data.parties: {data.parties} parties cannot hold anything; at least 1")
    if data.server is not None and data.parties is None:
        refuse(
            "data.server: goes with parties = N; with columns or files name the server among the parties, "
            "columns = {server = [], ...} or a file with nothing but id and label, and active = ['server']"
        )
    for name in data.party_names:
        if not name or name.startswith(".") or "/" in name or "\\" in name:
            refuse(f"data: {name!r} cannot be a party's name, of which a folder is made; no / and no . first")
    q = len(data.party_names)
    if q > 255:
        refuse(f"data: {q} parties are more than a run can name; at most 255")
    if isinstance(data.active, int) and not 1 <= data.active <= q:
        refuse(f"data.active: {data.active} of {q} parties cannot be active; give 1 to {q}")
    if not 0 < data.test_fraction < 1:
        refuse(f"data.test_fraction: {data.test_fraction} is not between 0 and 1")
    if (memory := memory_of(data.memory)) is None or memory < LEAST_MEMORY:
        refuse(f"data.memory: {data.memory!r} is not a memory size; give one like '2GB', at least '100MB'")


def _check_train(train: Train, refuse: Refuse) -> None:
    if train.loss is not None:
        _check_loss(train.loss, refuse)
    for key, value in (("epochs", train.epochs), ("batch", train.batch)):
        if value is not None and value < 1:
            refuse(f"train.{key}: {value} is not a positive number")
    if train.ahead is not None and train.ahead < 1:
        refuse(f"train.ahead: {train.ahead} is not a positive number of batches in flight")
    if train.evaluate_every < 0:
        refuse("train.evaluate_every: give epochs between evaluations, or 0 for the end only")
    if isinstance(train.step, float) and not LEAST <= train.step <= LARGEST:
        refuse(f"train.step: {train.step} is not a positive number from {LEAST:g} to {LARGEST:g}")
    if train.l2 != "auto" and not 0 <= train.l2 < float("inf"):
        refuse(f"train.l2: {train.l2} is not a number >= 0")
    if not 0 <= train.l1 < float("inf"):
        refuse(f"train.l1: {train.l1} is not a number >= 0")
    if isinstance(train.class_weight, dict):
        for label, weight in train.class_weight.items():
            if not 0 <= weight < float("inf"):
                refuse(f"train.class_weight: {weight} of label {label!r} is not a number >= 0")
    if train.stale is not None and train.stale < 0:
        refuse(f"train.stale: {train.stale} is not a number of rounds >= 0")
    if train.max_delay is not None and train.max_delay < 0:
        refuse(f"train.max_delay: {train.max_delay} is not a number of updates >= 0")
    if train.target is not None and not train.target > 0:
        refuse(f"train.target: {train.target} is not a positive sub-optimality")
    if train.tolerance is not None and not 0 <= train.tolerance < 1:
        refuse(f"train.tolerance: {train.tolerance} is not a part of the loss from 0 to below 1")
    if train.classes is not None and train.classes < 2:
        refuse(f"train.classes: {train.classes} is less than two")


def _check_loss(name: str, refuse: Refuse) -> None:
    from colonnade.losses import LOSSES  # loads NumPy, which a job that names no loss can be read without

    try:
        _ = LOSSES[name]
    except JobError as error:
        refuse(f"train.{error}")


def _check_direction(direction: Direction, refuse: Refuse) -> None:
    for key, number in (("memory", direction.memory), ("every", direction.every)):
        if number is not None and number < 1:
            refuse(f"direction.{key}: {number} is not a positive number")
    for key, value in (("delta", direction.delta), ("step", direction.step)):
        if isinstance(value, float) and not 0 < value < float("inf"):
            refuse(f"direction.{key}: {value} is not a positive number")


def _check_cascade(cascade: Cascade, refuse: Refuse) -> None:
    if cascade.directions < 1 or not 0 < cascade.mu < float("inf"):
        refuse("cascade: directions must be at least 1 and mu a positive number")
    for key, top in (("forward_top", cascade.forward_top), ("backward_top", cascade.backward_top)):
        if top is not None and not (0 < top < 1 or (top >= 1 and top == int(top))):
            refuse(f"cascade.{key}: {top:g} is neither a part between 0 and 1 nor a whole number")
    if isinstance(cascade.assumed_delay, int) and cascade.assumed_delay < 0:
        refuse(f"cascade.assumed_delay: {cascade.assumed_delay} is below 0")
    if cascade.local_steps is not None and cascade.local_steps < 1:
        refuse(f"cascade.local_steps: {cascade.local_steps} is not a positive number")
    if isinstance(cascade.server_step, float) and not 0 < cascade.server_step < float("inf"):
        refuse(f"cascade.server_step: {cascade.server_step} is not a positive number")


def _check_models(models: ModelSpecs, refuse: Refuse) -> None:
    named: dict[str, ModelSpec | ServerSpec] = {
        "model": models,
        "model.server": models.server,
        **{f"model.parties.{party}": model for party, model in models.parties.items()},
    }
    for name, model in named.items():
        _check_model(model, name, refuse)


def _check_model(model: ModelSpec | ServerSpec, name: str, refuse: Refuse) -> None:
    needs = {"function": "path", "torch": "path", "program": "command"}.get(model.kind)
    if needs and not getattr(model, needs):
        example = '"mine.py:scores"' if needs == "path" else '["awk", "-f", "mine.awk"]'
        refuse(f"{name}: kind = {model.kind!r} needs {needs} = {example}")
    if model.kind == "function" and (model.parameters is None or model.parameters < 0):
        refuse(f"{name}: kind = 'function' needs parameters = N, the length of its parameter vector")
    if isinstance(model, ModelSpec):
        if model.outputs is not None and not 1 <= model.outputs <= WIDEST:
            refuse(f"{name}.outputs: {model.outputs} is not a number from 1 to {WIDEST}")
        _check_images(model, name, refuse)


def _check_images(model: ModelSpec, name: str, refuse: Refuse) -> None:
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


def _check_privacy(privacy: PrivacyTerms, refuse: Refuse) -> None:
    if privacy.mechanism != "none" and (privacy.epsilon is None or privacy.epsilon <= 0):
        refuse(f"privacy.epsilon: mechanism = {privacy.mechanism!r} needs a positive epsilon")
    if not 0 < privacy.delta < 1 or privacy.clip <= 0:
        refuse("privacy: delta must be between 0 and 1, clip must be > 0")


def _check_network(net: Net, parties: int, refuse: Refuse) -> None:
    bandwidth = 1.0 if net.bandwidth_mbps is None else net.bandwidth_mbps
    if not (net.latency_ms >= 0 and bandwidth > 0 and net.deadline_s > 0):  # also catches NaN
        refuse("network: latency_ms must be >= 0, bandwidth_mbps and deadline_s must be > 0")
    if not (net.ns_per_value >= 0 and net.us_per_call >= 0):
        refuse("network: ns_per_value and us_per_call must be >= 0")
    if not (net.us_per_message >= 0 and net.ns_per_byte >= 0):
        refuse("network: us_per_message and ns_per_byte must be >= 0")
    if not net.work_ms >= 0:
        refuse(f"network.work_ms: {net.work_ms} is not a number of milliseconds >= 0")
    if net.speeds is not None and not (len(net.speeds) == parties and all(speed > 0 for speed in net.speeds)):
        refuse(f"network.speeds: give one positive speed for each of the {parties} parties")
    if not 1 <= net.processors <= MOST_PROCESSORS:
        refuse(f"network.processors: {net.processors} is not a number from 1 to {MOST_PROCESSORS}")
    for key in ("drop", "duplicate", "corrupt", "delay"):
        if not 0 <= (chance := getattr(net.faults, key)) < 1:
            refuse(f"network.faults.{key}: {chance} is not a chance from 0 to below 1")
    if any(set(cut) != {"start", "end", "side"} for cut in net.faults.partitions):
        refuse("network.faults.partitions: give each as {start = S, end = S, side = [PARTY, ...]}")


def _check_kernel(kernel: Kernel, refuse: Refuse) -> None:
    for key, number in (("block", kernel.block), ("features", kernel.features)):
        if isinstance(number, int) and number < 1:
            refuse(f"kernel.{key}: {number} is not a positive number of random features")
    if isinstance(kernel.sigma, float) and not LEAST <= kernel.sigma <= LARGEST:
        refuse(f"kernel.sigma: {kernel.sigma} is not a positive bandwidth from {LEAST:g} to {LARGEST:g}")
    if kernel.momentum is not None and not 0 <= kernel.momentum < 1:
        refuse(f"kernel.momentum: {kernel.momentum} is not a number from 0 to below 1")
    if kernel.fraction != "auto" and not 0 < kernel.fraction < float("inf"):
        refuse(f"kernel.fraction: {kernel.fraction} is not a positive part of the median distance")


def _check_trees(trees: Trees, refuse: Refuse) -> None:
    for key, low, high in (
        ("max_depth", 1, 30),
        ("max_bin", 2, 255),
        ("early_stopping_rounds", 0, None),
    ):
        value = getattr(trees, key)
        if value < low or (high is not None and value > high):
            refuse(f"trees.{key}: {value}; give {low} {f'to {high}' if high else 'or more'}")
    if trees.max_leaves < 0 or trees.max_leaves == 1:
        refuse(f"trees.max_leaves: {trees.max_leaves}; give 2 or more, or 0 for as many as the depth allows")
    if not 0 < trees.learning_rate < float("inf"):
        refuse(f"trees.learning_rate: {trees.learning_rate} is not a positive number")
    if trees.bits and not LEAST_BITS <= trees.bits <= MOST_BITS:
        refuse(f"trees.bits: {trees.bits}; give {LEAST_BITS} to {MOST_BITS}, or 0 for exact histograms")
    for key in ("bin_rows", "node_rows"):
        if getattr(trees, key) < 0:
            refuse(f"trees.{key}: {getattr(trees, key)} rows; give 0 or more")
    if not 0 <= trees.noise <= MOST_NOISE:
        refuse(f"trees.noise: {trees.noise:g}; give 0 to {MOST_NOISE}")
    for key in ("min_child_weight", "gamma", "reg_lambda"):
        if (value := getattr(trees, key)) != "auto" and not 0 <= value < float("inf"):
            refuse(f"trees.{key}: {value} is not a number >= 0")
    for key in ("subsample", "colsample_bytree"):
        if not 0 < getattr(trees, key) <= 1:
            refuse(f"trees.{key}: {getattr(trees, key)} is not a part above 0 and up to 1")
    for column, direction in trees.monotone_constraints.items():
        if direction not in (-1, 0, 1):
            refuse(f"trees.monotone_constraints: {column} = {direction}; give 1, -1 or 0")
    if not 0 < trees.validation_fraction < 1:
        refuse(f"trees.validation_fraction: {trees.validation_fraction} is not between 0 and 1")


def _check_woe(woe: Woe, refuse: Refuse) -> None:
    for key, number, lowest in (
        ("bins", woe.bins, 2),
        ("most", woe.most, 2),
        ("least", woe.least, 1),
        ("cases", woe.cases, 1),
    ):
        if number < lowest:
            refuse(f"woe.{key}: {number} is too few; give {lowest} or more")
    if woe.noise is not None and not woe.noise >= 0:
        refuse(f"woe.noise: {woe.noise:g} is below 0")
    if woe.bins > MOST_BINS:
        refuse(f"woe.bins: {woe.bins} bins are too many; at most {MOST_BINS}")


def _check_tune(tune: Tune, refuse: Refuse) -> None:
    if tune.trials < 1:
        refuse(f"tune.trials: {tune.trials} is not a positive number of settings to try")
    if tune.folds is not None and tune.held_back is not None:
        refuse("tune: give either folds = N or held_back = a part of the training rows")
    if tune.folds is not None and tune.folds < 2:
        refuse(f"tune.folds: {tune.folds} leaves nothing to hold back; give 2 or more, or held_back = 0.2")
    if tune.held_back is not None and not 0 < tune.held_back < 1:
        refuse(f"tune.held_back: {tune.held_back} is not between 0 and 1")
    for key, value in (("timeout_s", tune.timeout_s), ("epsilon", tune.epsilon)):
        if value is not None and not value > 0:
            refuse(f"tune.{key}: {value} is not a positive number")
