"""What runs a party in containers: the Containerfile, compose.yaml, manifests and the Helm chart."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import colonnade
from colonnade.deploy.policy.policy import check_training
from colonnade.deploy.settings import read_settings
from colonnade.deploy.terms.contract import check_terms, read_terms

yaml: Any = pytest.importorskip("yaml", reason="PyYAML is not installed: files in YAML are not read")

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "examples" / "deploy"
CHART = DEPLOY / "helm" / "colonnade-party"
CONTAINERFILE = (DEPLOY / "Containerfile").read_text("utf-8")
STATUS = ["colonnade", "party", "--config", "/srv/colonnade/party.toml", "--status"]
USER = 10001

Resource = dict[str, Any]


def resources(text: str) -> dict[tuple[str, str], Resource]:
    """The resources of a stream of YAML by kind and name."""
    found = [each for each in yaml.safe_load_all(text) if each is not None]
    named = {(each["kind"], each["metadata"]["name"]): each for each in found}
    assert len(named) == len(found)
    return named


@pytest.fixture
def manifests() -> dict[tuple[str, str], Resource]:
    files = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    return resources("\n---\n".join(path.read_text("utf-8") for path in files))


def render(*words: str) -> str:
    """The chart of a party named bank, as helm renders it."""
    helm = shutil.which("helm")
    if helm is None:
        pytest.skip("helm is not on the path: the chart is not rendered")
    command = [helm, "template", "bank", str(CHART), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def instructions(word: str) -> list[str]:
    """What follows a word of the Containerfile, by line."""
    return re.findall(rf"^{word} (.*)$", CONTAINERFILE.replace("\\\n", " "), re.M)


def test_the_container_is_built_with_all_that_compiling_needs() -> None:
    copied = {name for line in instructions("COPY") for name in line.split()[:-1]}
    assert {"pyproject.toml", "setup.py", "README.md", "LICENSE", "constraints.txt", "src"} <= copied
    modules = re.findall(r'compiled\("([\w.]+)"\)', (ROOT / "setup.py").read_text("utf-8"))
    assert len(modules) >= 3
    (proof,) = [line for line in instructions("RUN") if "import colonnade" in line]
    for module in modules:
        assert f"colonnade.{module}" in proof
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    for name in copied - {"--from=build", "/opt/colonnade"}:
        assert f"!{name}" in ignored


def test_the_container_runs_as_nobody_in_particular_and_tells_its_health() -> None:
    *_, image = CONTAINERFILE.split("\nFROM ")
    assert re.findall(r"^USER (.*)$", image, re.M) == [f"{USER}:{USER}"]
    (health,) = instructions("HEALTHCHECK")
    assert json.loads(health.split("CMD ")[1]) == STATUS
    assert instructions("STOPSIGNAL") == ["SIGTERM"]
    assert "OPENBLAS_NUM_THREADS=1" in instructions("ENV")
    assert {line.split()[0] for line in instructions("FROM")} == {"${BASE}"}
    (base,) = instructions("ARG")
    assert re.fullmatch(r"BASE=python:\d+\.\d+-slim-\w+", base)


def test_no_file_asks_for_whatever_is_latest() -> None:
    for path in DEPLOY.rglob("*"):
        if path.is_file():
            assert ":latest" not in path.read_text("utf-8"), path


def test_images_have_the_version_of_the_package() -> None:
    texts = [path.read_text("utf-8") for path in DEPLOY.rglob("*") if path.is_file()]
    tags = {tag for text in texts for tag in re.findall(r"colonnade-party:(\d[\w.]*)", text)}
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert tags | {chart["version"], chart["appVersion"]} == {colonnade.__version__}


def test_manifests_are_what_kubernetes_takes(manifests: dict[tuple[str, str], Resource]) -> None:
    checker: Any = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    for each in manifests.values():
        checker.validate(each, checker.latest_version(), strict=True)


def test_a_party_is_confined(manifests: dict[tuple[str, str], Resource]) -> None:
    party = manifests["StatefulSet", "bank"]["spec"]
    assert party["replicas"] == 1
    assert party["volumeClaimTemplates"]
    pod = party["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    context = pod["securityContext"]
    assert context["runAsNonRoot"] is True
    assert {context["runAsUser"], context["runAsGroup"], context["fsGroup"]} == {USER}
    # otherwise the daemon refuses the folder of its socket at its second start
    assert context["fsGroupChangePolicy"] == "OnRootMismatch"
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in (*pod["initContainers"], *pod["containers"]):
        own = container["securityContext"]
        assert own["readOnlyRootFilesystem"] is True
        assert own["allowPrivilegeEscalation"] is False
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
    (container,) = pod["containers"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["exec"]["command"] == STATUS
    claims = [claim["metadata"] for claim in party["volumeClaimTemplates"]]
    volumes = {volume["name"] for volume in (*pod["volumes"], *claims)}
    assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


def test_only_peers_reach_a_party_and_it_reaches_only_them(
    manifests: dict[tuple[str, str], Resource],
) -> None:
    policy = manifests["NetworkPolicy", "bank"]["spec"]
    assert policy["podSelector"] == manifests["StatefulSet", "bank"]["spec"]["selector"]
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
    ranges = manifests["Service", "bank-peers"]["spec"]["loadBalancerSourceRanges"]
    (inward,) = policy["ingress"]
    assert [each["ipBlock"]["cidr"] for each in inward["from"]] == ranges
    assert inward["ports"] == [{"protocol": "TCP", "port": 7401}]
    assert {port["port"] for rule in policy["egress"] for port in rule["ports"]} == {7401, 53}
    assert all(rule["to"] for rule in policy["egress"])


def test_the_settings_of_a_party_are_read(manifests: dict[tuple[str, str], Resource], tmp_path: Path) -> None:
    file = tmp_path / "party.toml"
    file.write_text(manifests["ConfigMap", "bank"]["data"]["party.toml"], "utf-8")
    settings = read_settings(file)
    private = Path("/run/colonnade")
    assert settings.path(settings.certificates) == private
    assert settings.monitor_token_file is not None
    assert settings.path(settings.monitor_token_file).parent == private


def test_secrets_become_files_that_only_their_owner_reads(
    manifests: dict[tuple[str, str], Resource], tmp_path: Path
) -> None:
    """The command of the manifest on files as a Secret's volume has them: links, readable by the group."""
    (init,) = manifests["StatefulSet", "bank"]["spec"]["template"]["spec"]["initContainers"]
    secrets, private = tmp_path / "secrets", tmp_path / "private"
    (secrets / "..data").mkdir(parents=True)
    private.mkdir()
    for name in ("bank.key", "page-token"):
        (secrets / "..data" / name).write_text(name, "utf-8")
        (secrets / "..data" / name).chmod(0o440)
        (secrets / name).symlink_to(Path("..data") / name)
    here = {"/secrets/": f"{secrets}/", "/run/colonnade/": f"{private}/"}
    script = re.sub("|".join(here), lambda found: here[found[0]], init["command"][-1])
    subprocess.run([*init["command"][:-1], script], check=True)
    modes = {path.name: path.stat().st_mode & 0o777 for path in private.iterdir()}
    assert modes == {"bank.key": 0o400, "page-token": 0o400}


def test_the_chart_is_the_manifests(manifests: dict[tuple[str, str], Resource]) -> None:
    rendered = resources(render())
    template = rendered["StatefulSet", "bank"]["spec"]["template"]["metadata"]
    assert (
        len(template.pop("annotations")["colonnade/settings"]) == 64
    )  # the one thing that only the chart can do
    assert rendered == manifests


def test_the_chart_takes_a_digest_and_several_peers() -> None:
    first = "peers[0].cidr=198.51.100.1/32,peers[0].port=7401"
    second = "peers[1].cidr=198.51.100.2/32,peers[1].port=7500"
    rendered = resources(
        render("--set", first, "--set", second, "--set", "image.digest=sha256:abc,service.type=ClusterIP")
    )
    (container,) = rendered["StatefulSet", "bank"]["spec"]["template"]["spec"]["containers"]
    assert container["image"].endswith("/colonnade-party@sha256:abc")
    assert "loadBalancerSourceRanges" not in rendered["Service", "bank-peers"]["spec"]
    policy = rendered["NetworkPolicy", "bank"]["spec"]
    assert [port["port"] for rule in policy["egress"] for port in rule["ports"]] == [7401, 7500, 53, 53]
    assert len(policy["ingress"][0]["from"]) == 2


def test_compose_starts_three_confined_parties() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    services = compose["services"]
    assert set(services) == {"prepare", "bank", "shop", "telco"}
    for name, service in services.items():
        assert service["image"] == f"colonnade-party:{colonnade.__version__}"
        built = DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]
        assert built.samefile(DEPLOY / "Containerfile")
        assert service["read_only"] is True
        assert service["tmpfs"] == ["/tmp"]  # noqa: S108
        assert service["cap_drop"] == ["ALL"]
        if name == "prepare":
            assert {mount.split(":")[0] for mount in service["volumes"]} >= set(compose["volumes"])
        else:
            assert service["volumes"] == [f"{name}:/srv/colonnade"]
            assert service["healthcheck"]["test"] == ["CMD", *STATUS]
            assert "user" not in service
            assert service["depends_on"] == {"prepare": {"condition": "service_completed_successfully"}}


def test_the_three_parties_would_run_the_job_of_the_bank(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(DEPLOY / "compose" / "prepare.py"), str(tmp_path)], check=True)
    terms = check_terms(read_terms(tmp_path / "bank" / "credit.toml"), "job")
    for party in ("bank", "shop", "telco"):
        mine = tmp_path / party
        keys = {path.name for path in (mine / "certificates").glob("*.key")}
        assert keys == {f"{party}.key"}
        settings = read_settings(mine / "party.toml")
        settings.credentials()
        if party != "bank":
            check_training(settings, "bank", terms)
        assert tomllib.loads((mine / "party.toml").read_text("utf-8"))["listen"] == f"{party}:7401"
