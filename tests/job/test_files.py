"""Jobs: every mistake is refused in one line that says where; the same job has the same digest."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from colonnade.errors import JobError
from colonnade.job import Job, job_from, read_job

PLAIN: dict[str, Any] = {
    "algorithm": "vfb2-sgd",
    "data": {"train": "a9a", "parties": 4, "active": 2},
    "train": {"epochs": 3},
    "network": {"latency_ms": 5.0},
}


def changed(**sections: Any) -> dict[str, Any]:
    """The plain job with some keys of its sections replaced; None takes a key away."""
    plain = copy.deepcopy(PLAIN)
    for section, keys in sections.items():
        if not isinstance(keys, dict):
            plain[section] = keys
            continue
        for key, value in keys.items():
            plain.setdefault(section, {})[key] = value
            if value is None:
                del plain[section][key]
    return plain


def refusal(**sections: Any) -> str:
    with pytest.raises(JobError) as caught:
        job_from(changed(**sections), where="job.toml")
    assert caught.value.exit_code == 2
    text = str(caught.value)
    assert text.startswith("job.toml: ")
    assert "\n" not in text
    return text.removeprefix("job.toml: ")


# -- unknown keys -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sections", "text"),
    [
        ({"algoritm": "x"}, "unknown key algoritm; did you mean algorithm?"),
        ({"train": {"epoch": 3}}, "unknown key train.epoch; did you mean train.epochs?"),
        ({"data": {"partys": 3}}, "unknown key data.partys; did you mean data.parties?"),
        ({"secure": {"summ": "tree"}}, "unknown key secure.summ; did you mean secure.sum?"),
        (
            {"train": {"threads": 4}},
            "train.threads = 4: threads within a party did not pay and are gone "
            "(docs/algorithms/vfb2.md says why); leave the key out",
        ),
        (
            {"network": {"transport": "grpc"}},
            "network.transport = 'grpc': gRPC is gone, processes speak over TLS; leave the key out",
        ),
        ({"network": {"latency": 1}}, "unknown key network.latency; did you mean network.latency_ms?"),
        (
            {"network": {"faults": {"dropp": 0.1}}},
            "unknown key network.faults.dropp; did you mean network.faults.drop?",
        ),
        (
            {"secure": {"zzz": 1}},
            "unknown key secure.zzz; known here: "
            "accept_leak, epsilon, few_rows, helper, labels, neighbours, noise, products, proofs, reveal, "
            "scores, sum",
        ),
    ],
)
def test_an_unknown_key_is_named_with_its_section_and_the_nearest_known_one(
    sections: dict[str, Any], text: str
) -> None:
    assert refusal(**sections) == text


# -- wrong types ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sections", "place"),
    [
        ({"train": {"epochs": "ten"}}, "train.epochs: expected a whole number, got text"),
        ({"train": {"epochs": 2.5}}, "train.epochs: expected a whole number, got a decimal number"),
        (
            {"train": {"loss": "hinge"}},
            "train.loss: 'hinge' is not one of 'logistic', 'squared', 'smooth_hinge', 'softmax', "
            "'poisson', 'gamma'",
        ),
        ({"train": {"step": "fast"}}, "train.step: 'fast' is not one of a number, 'auto'"),
        ({"data": {"parties": True}}, "data.parties: expected a whole number, got true or false"),
        ({"world": "moon"}, "world: 'moon' is not one of 'simulated', 'local', 'network', 'mpi'"),
        (
            {"model": {"parties": {"party-0": {"kind": "tree"}}}},
            "model.parties[...].kind: 'tree' is not one of 'linear', 'mlp', 'cnn', 'torch', 'function', "
            "'program'",
        ),
        ({"secure": {"labels": "open"}}, "secure.labels: 'open' is not one of 'blind', 'clear'"),
        ({"network": {"faults": {"drop": "often"}}}, "network.faults.drop: expected a number, got text"),
        ({"train": "fast"}, "train: expected a section, got text"),
    ],
)
def test_a_wrong_type_or_an_unknown_choice_is_named_with_its_place(
    sections: dict[str, Any], place: str
) -> None:
    assert refusal(**sections) == place


def test_a_missing_algorithm_or_section_is_named() -> None:
    with pytest.raises(JobError, match=r"^job: algorithm: this key is missing$"):
        job_from({"data": PLAIN["data"]})
    with pytest.raises(JobError, match=r"^job: data: this key is missing$"):
        job_from({"algorithm": "vfb2-sgd"})


def test_a_whole_number_is_a_step_and_a_real_one_too() -> None:
    assert job_from(changed(train={"step": 1})).train.step == 1.0
    assert job_from(changed(train={"step": 0.25})).train.step == 0.25
    assert job_from(changed()).train.step == "auto"


# -- ranges -----------------------------------------------------------------------------------------

NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("section", "key", "values", "text"),
    [
        ("train", "epochs", [0, -1], "train.epochs: {} is not a positive number"),
        ("train", "batch", [0, -5], "train.batch: {} is not a positive number"),
        ("train", "ahead", [0, -2], "train.ahead: {} is not a positive number of batches in flight"),
        ("model", "outputs", [0, -1, 10**9], "model.outputs: {} is not a number from 1 to 65536"),
        ("train", "max_delay", [-1], "train.max_delay: {} is not a number of updates >= 0"),
        ("train", "step", [0.0, -0.1, INFINITY, NAN], "train.step: {} is not a positive number"),
        ("train", "l2", [-1e-9, INFINITY, NAN], "train.l2: {} is not a number >= 0"),
        ("train", "target", [0.0, -1.0, NAN], "train.target: {} is not a positive sub-optimality"),
        ("train", "evaluate_every", [-1], "train.evaluate_every: give epochs between evaluations"),
        ("data", "active", [0, 5], "data.active: {} of 4 parties cannot be active; give 1 to 4"),
        ("data", "test_fraction", [0.0, 1.0, NAN], "data.test_fraction: {} is not between 0 and 1"),
        ("data", "parties", [0, -3], "data.parties: {} parties cannot hold anything; at least 1"),
        ("data", "parties", [256], "data: {} parties are more than a run can name; at most 255"),
        ("network", "latency_ms", [-1.0, NAN], "network: latency_ms must be >= 0"),
        ("network", "bandwidth_mbps", [0.0, -1.0, NAN], "network: latency_ms must be >= 0, bandwidth_mbps"),
        ("network", "deadline_s", [0.0, -1.0, NAN], "network: latency_ms must be >= 0, bandwidth_mbps"),
        ("network", "us_per_call", [-1.0, NAN], "network: ns_per_value and us_per_call must be >= 0"),
        ("network", "ns_per_value", [-1.0], "network: ns_per_value and us_per_call must be >= 0"),
        ("network", "us_per_message", [-1.0, NAN], "network: us_per_message and ns_per_byte must be >= 0"),
        ("network", "ns_per_byte", [-1.0], "network: us_per_message and ns_per_byte must be >= 0"),
        (
            "network",
            "speeds",
            [[1.0] * 3, [1.0] * 5, [1, 1, 1, 0], [1, 1, 1, NAN], []],
            "network.speeds: give one positive speed for each of the 4 parties",
        ),
    ],
)
def test_a_value_out_of_range_is_refused_with_its_place(
    section: str, key: str, values: list[Any], text: str
) -> None:
    for value in values:
        assert refusal(**{section: {key: value}}).startswith(text.format(value))


@pytest.mark.parametrize("key", ["drop", "duplicate", "corrupt", "delay"])
@pytest.mark.parametrize("value", [-0.1, 1.0, 7.0, NAN])
def test_a_fault_has_a_chance_below_one(key: str, value: float) -> None:
    text = refusal(network={"faults": {key: value}})
    assert text == f"network.faults.{key}: {value} is not a chance from 0 to below 1"


def test_a_partition_has_a_start_an_end_and_a_side() -> None:
    text = refusal(network={"faults": {"partitions": [{"start": 1.0, "side": ["a"]}]}})
    assert text.startswith("network.faults.partitions: give each as {start = S, end = S, side")


def test_a_negative_seed_is_refused() -> None:
    assert refusal(seed=-1) == "seed: -1 is not a number from 0 to below 2^63"
    assert refusal(seed=2**63) == f"seed: {2**63} is not a number from 0 to below 2^63"


# -- sources ----------------------------------------------------------------------------------------

FILES = {"bank": "bank.csv", "shop": "shop.csv"}
SOURCE = "data: give either train = FILE"
SPLIT = "data: say who holds which columns by exactly one of"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"train": None}, SOURCE),
        ({"files": FILES, "parties": None}, SOURCE),
        ({"parties": None}, SPLIT),
        ({"columns": {"bank": ["a"]}}, SPLIT),
        ({"train": None, "files": FILES}, SPLIT),
        ({"train": None, "parties": None, "files": FILES, "test": "t.csv"}, "data.test: with files"),
        ({"test_files": FILES}, "data.test_files: goes with files"),
    ],
)
def test_missing_or_contradictory_sources_are_refused(data: dict[str, Any], text: str) -> None:
    assert refusal(data=data).startswith(text)


def test_each_way_to_name_the_columns_is_taken() -> None:
    assert job_from(changed()).data.parties == 4
    columns = {"parties": None, "columns": {"bank": ["a"], "shop": ["b"]}}
    assert job_from(changed(data=columns)).data.columns == columns["columns"]
    files = {"parties": None, "train": None, "files": FILES, "test_files": FILES}
    assert job_from(changed(data=files)).data.files == FILES


# -- digest -----------------------------------------------------------------------------------------


def test_the_digest_of_a_job_is_stable_and_does_not_depend_on_the_order_of_keys() -> None:
    backwards = {key: PLAIN[key] for key in reversed(PLAIN)}
    assert job_from(PLAIN).digest() == job_from(backwards).digest() == job_from(PLAIN).digest()


def test_spelling_a_default_out_is_the_same_job() -> None:
    assert job_from(changed(seed=0, train={"l2": 1e-4})).digest() == job_from(PLAIN).digest()


@pytest.mark.parametrize(
    "sections",
    [
        {"seed": 1},
        {"algorithm": "vfb-sgd"},
        {"world": "simulated"},
        {"train": {"l2": 1e-3}},
        {"data": {"active": 1}},
        {"secure": {"sum": "plain"}},
        {"network": {"latency_ms": 5.1}},
        {"network": {"faults": {"drop": 0.1}}},
    ],
)
def test_any_change_changes_the_digest(sections: dict[str, Any]) -> None:
    assert job_from(changed(**sections)).digest() != job_from(PLAIN).digest()


# -- files ------------------------------------------------------------------------------------------


def written(folder: Path, text: str) -> Path:
    path = folder / "job.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_job_file_is_read_and_its_paths_are_taken_from_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    for name in ("bank.csv", "shop.csv"):
        (tmp_path / "data" / name).touch()
    path = written(
        tmp_path,
        """
        algorithm = "vfb2-sgd"
        [data]
        files = { bank = "data/bank.csv", shop = "data/shop.csv" }
        id = "id"
        label = "y"
        """,
    )
    monkeypatch.chdir("/")
    job = read_job(path)
    assert isinstance(job, Job)
    assert job.data.files == {name: str(tmp_path / "data" / f"{name}.csv") for name in ("bank", "shop")}


def test_absolute_paths_and_names_of_data_sets_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "far.csv").touch()
    head = 'algorithm = "vfb2-sgd"\n[data]\nparties = 2\n'
    for name in ("a9a", str(tmp_path / "far.csv")):
        assert read_job(written(tmp_path, f'{head}train = "{name}"\n')).data.train == name


def test_a_file_next_to_the_job_wins_over_a_data_set_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "a9a").touch()
    path = written(tmp_path, 'algorithm = "vfb2-sgd"\n[data]\nparties = 2\ntrain = "a9a"\n')
    assert read_job(path).data.train == str(tmp_path / "a9a")


def test_a_job_file_that_is_not_there_not_toml_or_not_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"none\.toml: there is no such job file"):
        read_job(tmp_path / "none.toml")
    with pytest.raises(JobError, match=r"job\.toml: not valid TOML: .*line 1"):
        read_job(written(tmp_path, "algorithm = \nseed = 1\n"))
    (tmp_path / "job.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(JobError, match=r"job\.toml: cannot be read"):
        read_job(tmp_path / "job.toml")
    with pytest.raises(JobError, match="cannot be read"):
        read_job(tmp_path)


def test_a_mistake_in_a_job_file_names_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, 'algorithm = "vfb2-sgd"\nseeed = 1\n')
    with pytest.raises(JobError, match=r"job\.toml: unknown key seeed; did you mean seed\?"):
        read_job(path)
