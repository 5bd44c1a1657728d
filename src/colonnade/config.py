"""What a job is: one TOML file that every party reads the same way.

The sections below are the whole language. Unknown keys, wrong types and combinations that cannot work
are refused when the job is read, in one line that says where and how to put it right.
"""

from __future__ import annotations

import difflib
import hashlib
import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

from colonnade.errors import JobError

World = Literal["simulated", "local", "network"]


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
    scale: Literal["none", "zscore", "minmax", "maxabs"] | None = None
    categorical: list[str] | None = None
    missing: Literal["error", "zero", "mean"] | None = None
    drop: list[str] | None = None
    features: int | None = None
    intercept: bool = False


class Train(Section, frozen=True):
    """The objective and how it is minimised."""

    epochs: int = 10
    batch: int = 256
    step: float | Literal["auto"] = "auto"
    l2: float = 1e-4
    loss: Literal["logistic", "squared", "smooth_hinge"] | None = None
    regularizer: Literal["l2", "nonconvex"] = "l2"
    ahead: int | None = None
    max_delay: int | None = None
    threads: int = 1
    target: float | None = None
    evaluate_every: int = 1


class Secure(Section, frozen=True):
    """How partial scores are summed."""

    sum: Literal["masked", "tree", "plain"] = "masked"
    accept_leak: bool = False


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
    faults: FaultPlan = FaultPlan()
    transport: Literal["tls", "grpc"] = "tls"
    deadline_s: float = 60.0


class Job(Section, frozen=True, kw_only=True):
    """Everything the parties agree on."""

    algorithm: str
    world: World = "local"
    seed: int = 0
    data: Data
    train: Train = Train()
    secure: Secure = Secure()
    network: Net = Net()

    def digest(self) -> str:
        """Two parties that hold the same digest mean the same job."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()


def read_job(path: Path) -> Job:
    """The job in a TOML file; relative data paths are taken from the file's own folder."""
    try:
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise JobError(f"{path}: there is no such job file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise JobError(f"{path}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise JobError(f"{path}: not valid TOML: {error}") from error
    job = job_from(plain, where=str(path))
    return msgspec.structs.replace(job, data=_rooted(job.data, path.resolve().parent))


def job_from(plain: dict[str, Any], where: str = "job") -> Job:
    """A job from plain dictionaries, with every mistake named."""
    _refuse_unknown(plain, Job, where, "")
    try:
        job = msgspec.convert(plain, Job)
    except msgspec.ValidationError as error:
        raise JobError(f"{where}: {_readable(str(error))}") from error
    _check(job, where)
    return job


def _refuse_unknown(plain: Any, kind: type[Section], where: str, path: str) -> None:
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
            _refuse_unknown(value, inner, where, f"{path}{key}.")


def _readable(text: str) -> str:
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
    q = len(data.columns or data.files or ()) or data.parties or 0
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
    bandwidth = 1.0 if net.bandwidth_mbps is None else net.bandwidth_mbps
    if not (net.latency_ms >= 0 and bandwidth > 0 and net.deadline_s > 0):  # also catches NaN
        refuse("network: latency_ms must be >= 0, bandwidth_mbps and deadline_s must be > 0")
    if not (net.ns_per_value >= 0 and net.us_per_call >= 0):
        refuse("network: ns_per_value and us_per_call must be >= 0")
    if net.speeds is not None and not (len(net.speeds) == q and all(speed > 0 for speed in net.speeds)):
        refuse(f"network.speeds: give one positive speed for each of the {q} parties")
    for key in ("drop", "duplicate", "corrupt", "delay"):
        if not 0 <= (chance := getattr(net.faults, key)) < 1:
            refuse(f"network.faults.{key}: {chance} is not a chance from 0 to below 1")
    if any(set(cut) != {"start", "end", "side"} for cut in net.faults.partitions):
        refuse("network.faults.partitions: give each as {start = S, end = S, side = [PARTY, ...]}")


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
