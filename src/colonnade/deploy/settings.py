"""A party's own settings: party.toml, which never leaves the party.

It says who the party is and where it listens, which peers it knows, which data it offers under which names,
what it allows whom to do with them, and where it keeps its runs. Paths are relative to the file.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Literal

import msgspec

from colonnade.deploy.agreed import checked_day, checked_line, one_script
from colonnade.deploy.people_settings import Control, Known, SignIn, check_people
from colonnade.deploy.telemetry_settings import Telemetry, check_telemetry
from colonnade.describe.joint import NOISE
from colonnade.errors import JobError, suggest
from colonnade.job import (
    HERE,
    MEMORY,
    Device,
    EngineTerms,
    Section,
    memory_of,
    read_toml,
    readable,
    refuse_unknown,
)
from colonnade.job.data_section import NaValues
from colonnade.job.presets import PRESETS
from colonnade.job.source import Address, Source, checked_text, source_of
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.channel import Address as HostPort
from colonnade.openings.leaks import Leak

LONGEST_APPROVAL_S = 7 * 24 * 3600
SOCKET_LIMIT = 100  # a path of a local socket cannot be longer than about this


class Entry(Section, frozen=True):
    """One entry of the catalogue, and what is offered of it.

    It is a file, or a `table` or `query` of the database at `uri`, or the object there. Without `columns` all
    columns are offered but id, label, `weight`, which says how much a row counts where a job asks for that,
    and `exposure`, which says for how long its events were counted.
    """

    id: str | tuple[str, ...]
    file: str | None = None
    uri: str | None = None
    table: str | None = None
    query: str | None = None
    label: str | None = None
    weight: str | None = None
    exposure: str | None = None
    columns: tuple[str, ...] | None = None
    separator: str | None = None  # how a CSV file is written: what is not said is found out
    decimal: Literal[".", ","] | None = None
    thousands: str | None = None
    encoding: str | None = None
    na_values: NaValues | None = None  # values that stand for a gap, such as -999

    @property
    def keys(self) -> tuple[str, ...]:
        """The id columns."""
        return (self.id,) if isinstance(self.id, str) else self.id

    def source(self, where: str) -> str:
        """Return what is read, as a job names it; JobError if it is not said, or said twice."""
        if (self.file is None) == (self.uri is None):
            raise JobError(f"{where}: give either file, or uri with table or query")
        parts = {"uri": self.uri, "table": self.table, "query": self.query}
        given = {key: value for key, value in parts.items() if value is not None}
        if self.file is not None and given:
            raise JobError(f"{where}: {', '.join(given)}: goes with uri, not with file")
        return str(checked_text(given if self.file is None else self.file, where))


class Code(Section, frozen=True):
    """A model that is code, which may be run here when a job asks for it by name.

    Paths are relative to the settings.
    """

    kind: Literal["torch", "function", "program"]
    path: str | None = None
    command: tuple[str, ...] | None = None
    parameters: int | None = None


class Rule(Section, frozen=True):
    """What a proposer may ask for; one under [policy.peers.NAME] replaces the general one for that peer."""

    algorithms: tuple[str, ...] | None = None
    data: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    min_rows: int = 100
    min_parties: int = 2
    accept: tuple[Leak, ...] = ()
    train: bool = True
    predict: bool = True
    approval: Literal["policy", "ask"] = "policy"  # ask: what the policy allows waits for the operator
    approval_s: float = 3600.0
    changed: Literal["refuse", "accept"] = "refuse"  # whether peers may come with other ids than before
    degraded: bool = False  # whether rows may be scored while a party is away
    predict_approval: Literal["policy", "ask"] = (
        "policy"  # ask: scores of a model wait for the operator, once
    )
    approvals: int = 1  # how many people have to approve
    purpose: tuple[str, ...] | None = None  # what jobs may be for; None: anything
    contract: tuple[str, ...] | None = None  # under which contracts
    contact: str = ""  # whom a proposer that is refused may ask
    expires: str = ""  # the last day, in UTC, on which anything is accepted, and for which a job may last
    runs_of_a_job: int | None = None  # of one proposer under one name, at most


class Policy(Rule, frozen=True):
    """The general rule, those for single peers, columns never offered, and the privacy budget of labels."""

    epsilon: float | None = None
    delta: float = 1e-4
    never: tuple[str, ...] = ()
    approved: tuple[str, ...] | None = None
    peers: dict[str, Rule] = msgspec.field(default_factory=dict)


class Limits(Section, frozen=True):
    """The most that peers can make this party do, by any job; of all peers but where it says more.

    A job over one of them is refused before any data is read, a peer over one is stopped, both by its name.
    """

    epochs: int = 10_000
    classes: int = 10_000
    parameters: int = 20_000_000  # numbers that this party trains or keeps for one model
    deadline_s: float = 600.0  # how long a silent peer may be waited for
    wait_s: float = 3_600.0  # and one that went away, before its run is over
    run_s: float = 86_400.0
    run_memory_mb: float = 65_536.0  # of the process that a training has at a daemon
    run_cpu_s: float = 86_400.0  # and its time on the processor
    runs: int = 16  # that go on or wait at once; a peer that has none may always have one
    runs_of_a_peer: int = 8
    proposals_an_hour: int = 600  # of one peer
    waiting_mb: float = 1024.0  # that one peer makes this party keep, in all its runs
    ids: int = 50_000_000  # that a peer may bring to one alignment
    ids_ratio: float = 100.0  # and for every id of this party's own
    comparisons_a_day: int = 200  # of one entry's ids with those of one peer
    id_sets_a_day: int = 4  # different sets of ids of one peer among these, where changed ids are accepted
    forgotten_ids: int | None = None  # rows of the last model that are gone, at least, if any are
    scored_ids_a_day: int | None = None  # that one peer may ask about for the first time, found or not
    missed_ids_a_day: int | None = (
        None  # of these, not found; None: a hundredth of the own ids, at least 1000
    )
    woe_least: int = 50  # rows of a bin whose count is shown, at least; a job may ask for more
    woe_cases: int = 10  # goods and bads, each, of a bin whose WOE is told, at least
    woe_noise: float = 2.0  # of counts that a peer is told, for the square root of its columns, at least
    gradients_noise: float = 0.4  # rows of noise in the mean of all gradients that a peer is told, at least
    trees_bin_rows: int = 10  # of a bin whose sums trees are told, at least; a job may ask for more
    trees_node_rows: int = 40  # and of a node
    trees_noise: float = 0.5  # of these sums, at least
    describe_noise: float = NOISE  # on correlations that peers are told, in standard errors, at least
    trees_exact: bool = False  # whether trees may be told exact histograms, as by version 0.2
    refreshes_an_hour: int = 60  # of the service's session
    # what runs may tell one peer by counting, over all of them together; None: anything
    opened_label_bits_per_row: float | None = None
    opened_label_numbers_per_row: float | None = 2.5  # linear statistics
    opened_column_bits_per_cell: float | None = None


class Serve(Section, frozen=True):
    """The prediction service: which model answers, where it listens, and who may ask."""

    listen: str
    model: str
    data: str | None = None
    token_file: str | None = None
    client_ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    max_ids: int = 1000
    max_bytes: int = 65536


class Settings(Section, frozen=True, kw_only=True):
    """All settings of one party."""

    name: str
    listen: str
    certificates: str = "certificates"
    runs: str = "runs"
    monitor: str | None = None
    monitor_token_file: str | None = None
    reconnect_s: float = 60.0
    timeline: bool = False  # write down when this party computes, sends and waits in trainings
    device: Device = "cpu"  # where networks compute here; auto: on this machine's GPU, if torch sees one
    engine: EngineTerms = HERE  # who computes here on rows of linear models and trees
    memory: str = "4GB"  # what a training may use here; larger columns are prepared and used in pieces
    retention_days: int | None = None  # models that are older and not in use are deleted
    test_scores: Literal["keep", "drop"] = "drop"  # of test rows, at the label holder, for reports and drift
    line_mbps: float = 100.0  # what lines to peers carry, for estimates of what a run will take
    peers: dict[str, str]
    data: dict[str, Entry] = msgspec.field(default_factory=dict)
    models: dict[str, Code] = msgspec.field(default_factory=dict)
    policy: Policy = Policy()
    limits: Limits = Limits()
    serve: Serve | None = None
    telemetry: Telemetry = Telemetry()
    people: dict[str, Known] = msgspec.field(default_factory=dict)
    sign_in: SignIn | None = None
    control: Control | None = None
    folder: str = ""  # where the file lies; set when it is read

    def path(self, name: str) -> Path:
        """Return the path of a file that the settings name."""
        return Path(self.folder) / name

    def source(self, name: str) -> Source:
        """Return what an entry of the catalogue is read from."""
        found = source_of(self.data[name].source(f"data.{name}"))
        return found.beside(Path(self.folder)) if isinstance(found, Address) else self.path(str(found))

    @property
    def memory_bytes(self) -> int:
        """What a training may use of this machine's memory."""
        return memory_of(self.memory) or MEMORY

    @property
    def state(self) -> Path:
        """The folder of runs and models."""
        return self.path(self.runs)

    @property
    def socket(self) -> Path:
        """The local socket by which the party's own commands reach its daemon."""
        path = self.state.absolute() / "daemon.sock"
        if len(str(path)) < SOCKET_LIMIT:
            return path
        name = hashlib.sha256(str(path).encode()).hexdigest()[:24]
        return Path(tempfile.gettempdir()) / f"colonnade-{os.getuid()}" / f"{name}.sock"

    def credentials(self) -> Credentials:
        """Return this party's key, and the certificates of its peers."""
        return Credentials.load(self.path(self.certificates), self.name, self.peers)

    def credentials_now(self) -> Credentials:
        """Return the same as the files are now; a peer whose certificate was taken away has none."""
        folder = self.path(self.certificates)
        return Credentials.load(folder, self.name, [p for p in self.peers if (folder / f"{p}.crt").exists()])


def address(text: str, where: str) -> HostPort:
    """Return the host and port in a setting; JobError, naming `where` it stands, if it is no address.

    >>> address("127.0.0.1:7401", "listen")
    ('127.0.0.1', 7401)
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise JobError(f"{where}: {text!r} is not an address; write HOST:PORT")
    return host.strip("[]"), int(port)


def read_settings(path: Path) -> Settings:
    """Return the settings in a TOML file; JobError if they cannot be read or do not go together."""
    plain = read_toml(path, "there is no such file; docs/deploy.md shows how to write one")
    refuse_unknown(plain, Settings, str(path))
    for name, entry in plain.get("data", {}).items():
        refuse_unknown(entry, Entry, str(path), f"data.{name}.")
    for name, code in plain.get("models", {}).items():
        refuse_unknown(code, Code, str(path), f"models.{name}.")
    try:
        settings = msgspec.convert({**plain, "folder": str(path.resolve().parent)}, Settings)
    except msgspec.ValidationError as error:
        raise JobError(f"{path}: {readable(str(error), Settings)}") from error
    _check(settings, str(path))
    return settings


def _check(settings: Settings, where: str) -> None:
    """Raise JobError for addresses, columns, models, budgets and peers that cannot be meant."""
    address(settings.listen, f"{where}: listen")
    for peer, text in settings.peers.items():
        address(text, f"{where}: peers.{peer}")
    one_script(f"{where}: name and peers", (settings.name, *settings.peers))
    if settings.name in settings.peers:
        raise JobError(f"{where}: peers: {settings.name} is this party itself")
    if settings.monitor is not None and not address(settings.monitor, f"{where}: monitor")[0].startswith(
        "127."
    ):
        raise JobError(f"{where}: monitor: {settings.monitor}; it is not encrypted, so it stays on 127.0.0.1")
    if settings.monitor_token_file is not None and settings.monitor is None:
        raise JobError(f"{where}: monitor_token_file: there is no monitor; say where, as monitor = HOST:PORT")
    check_telemetry(settings.telemetry, where)
    if settings.telemetry.listen is not None:
        address(settings.telemetry.listen, f"{where}: telemetry.listen")
    if settings.retention_days is not None and settings.retention_days < 1:
        raise JobError(f"{where}: retention_days: {settings.retention_days} is not above 0")
    if not settings.line_mbps > 0:
        raise JobError(f"{where}: line_mbps: {settings.line_mbps} is not above 0")
    check_people(settings.people, settings.sign_in, settings.control, where)
    if settings.sign_in is not None and settings.monitor_token_file is None:
        raise JobError(f"{where}: sign_in: there is no page; set monitor and monitor_token_file as well")
    if settings.control is not None:
        host, _ = address(settings.control.listen, f"{where}: control.listen")
        if not host.startswith("127.") and settings.control.certificate is None:
            raise JobError(f"{where}: control: away from 127.0.0.1 it is encrypted; give certificate and key")
    approvers = sum("approver" in each.roles for each in settings.people.values())
    groups = any(each.group is not None for each in settings.people.values())
    for rule in (settings.policy, *settings.policy.peers.values()):
        if rule.approvals > 1 and approvers < rule.approvals and not groups:
            raise JobError(
                f"{where}: policy.approvals = {rule.approvals}, and {approvers} of [people] are approvers"
            )
    if memory_of(settings.memory) is None:
        raise JobError(f"{where}: memory: {settings.memory!r} is not a memory size; write '2GB' or '512MB'")
    for name, entry in settings.data.items():
        entry.source(f"{where}: data.{name}")
        never = set(settings.policy.never) & set(entry.columns or ())
        if never:
            raise JobError(f"{where}: data.{name}: offers column {min(never)}, which policy.never forbids")
    _check_models(settings, where)
    policy = settings.policy
    if (policy.epsilon is not None and not policy.epsilon > 0) or not 0 < policy.delta < 1:
        raise JobError(f"{where}: policy: epsilon must be above 0, delta between 0 and 1")
    for rule in (policy, *policy.peers.values()):
        _check_rule(rule, f"{where}: policy")
    for name in Limits.__struct_fields__:
        limit = getattr(settings.limits, name)
        if limit is not None and not isinstance(limit, bool) and not limit > 0:
            raise JobError(f"{where}: limits.{name}: {getattr(settings.limits, name)} is not above 0")
    unknown = set(settings.policy.peers) - set(settings.peers)
    if unknown:
        raise JobError(f"{where}: policy.peers: {min(unknown)} is not among the peers")
    if settings.serve is not None:
        _check_service(settings.serve, where)


def _check_rule(rule: Rule, where: str) -> None:
    """Raise JobError for a rule of the policy that cannot be meant."""
    for algorithm in rule.algorithms or ():
        if algorithm not in PRESETS:
            raise JobError(f"{where}.algorithms: there is no {algorithm!r}; {suggest(algorithm, PRESETS)}")
    if rule.min_rows < 0 or rule.min_parties < 0:
        raise JobError(f"{where}: min_rows and min_parties are not below 0")
    if not 1 <= rule.approval_s <= LONGEST_APPROVAL_S:
        raise JobError(f"{where}: approval_s is 1 s to {LONGEST_APPROVAL_S} s (a week)")
    checked_line(rule.contact, f"{where}.contact")
    checked_day(rule.expires, f"{where}.expires")
    for name in ("approvals", "runs_of_a_job"):
        if (count := getattr(rule, name)) is not None and count < 1:
            raise JobError(f"{where}.{name}: {count}; at least 1")


def _check_models(settings: Settings, where: str) -> None:
    """Raise JobError for a model that is code and lacks what its kind needs."""
    for name, code in settings.models.items():
        needs = "command" if code.kind == "program" else "path"
        if not getattr(code, needs):
            raise JobError(f"{where}: models.{name}: kind = '{code.kind}' needs {needs}")
        if code.kind == "function" and (code.parameters is None or code.parameters < 0):
            raise JobError(f"{where}: models.{name}: kind = 'function' needs parameters, how many it has")


def _check_service(serve: Serve, where: str) -> None:
    """Raise JobError for a prediction service that anybody could ask, or that cannot listen."""
    address(serve.listen, f"{where}: serve.listen")
    if serve.token_file is None and serve.client_ca is None:
        raise JobError(f"{where}: serve: give token_file or client_ca; an open service answers anybody")
    if serve.client_ca is not None and (serve.certificate is None or serve.key is None):
        raise JobError(f"{where}: serve.client_ca: needs certificate and key of the service as well")
