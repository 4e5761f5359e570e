"""The files for clusters: of the right form, of the versions that the tests run with, and the script for SLURM runs."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # a part of Ray; its stubs would be one more package
import pytest
import ray
import yaml

from automl import __version__
from studies.storage import Storage
from studies.trial import TrialState
from tests.helpers.commands import REPOSITORY, Command, environment_of, until

DEPLOY = REPOSITORY / "deploy"
FILES = sorted(path for path in [*DEPLOY.iterdir(), REPOSITORY / "docs" / "cluster.md"] if path.is_file())
SCRIPT = DEPLOY / "slurm.sh"


def pinned(package: str) -> str:
    (version,) = re.findall(rf"^{package}==(\S+)$", (REPOSITORY / "constraints.txt").read_text(), flags=re.MULTILINE)
    return str(version)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_versions_are_those_of_the_project(file: Path) -> None:
    text = file.read_text()
    assert set(re.findall(r"ray(?:\[\w+\])?==([\d.]+)", text)) <= {pinned("ray")}
    assert set(re.findall(r"/automl:([\d.]+)", text)) <= {__version__}


def test_image_has_a_python_that_the_project_takes() -> None:
    (minor,) = re.findall(r"^FROM python:3\.(\d+)\.\d+-", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE)
    (least,) = re.findall(
        r'^requires-python = ">=3\.(\d+)"$', (REPOSITORY / "pyproject.toml").read_text(), re.MULTILINE
    )
    assert int(minor) >= int(least)


def test_image_copies_what_the_build_needs() -> None:
    copied = {
        word for line in re.findall(r"^COPY (.*) \S+$", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE)
        for word in line.split()
    }  # fmt: skip
    assert copied >= {"constraints.txt", "pyproject.toml", "README.md", "LICENSE"}
    assert {name for name in copied if (REPOSITORY / name).is_dir()} == {
        "automl",
        "search_spaces",
        "studies",
        "trainers",
    }
    assert all((REPOSITORY / name).exists() for name in copied)


def test_launcher_file_fits_rays_schema() -> None:
    schema = json.loads((Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text())
    launcher = yaml.safe_load((DEPLOY / "cluster-launcher.yaml").read_text())
    jsonschema.validate(launcher, schema)
    assert launcher["head_node_type"] in launcher["available_node_types"]


@pytest.fixture
def kubernetes() -> Mapping[str, Mapping[str, Any]]:
    documents = yaml.safe_load_all((DEPLOY / "kuberay.yaml").read_text())
    return {document["kind"]: document for document in documents}


def pods(cluster: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    spec = cluster["spec"]
    yield from (group["template"]["spec"] for group in [spec["headGroupSpec"], *spec["workerGroupSpecs"]])


def test_manifest_names_one_image_the_token_and_the_version(kubernetes: Mapping[str, Mapping[str, Any]]) -> None:
    cluster = kubernetes["RayCluster"]
    assert cluster["apiVersion"] == "ray.io/v1"
    assert cluster["spec"]["rayVersion"] == pinned("ray")
    assert cluster["spec"]["authOptions"] == {"mode": "token"}
    images = {container["image"] for pod in pods(cluster) for container in pod["containers"]}
    assert images == {f"registry.example.com/automl:{__version__}"}


def test_manifest_mounts_only_volumes_that_it_has(kubernetes: Mapping[str, Mapping[str, Any]]) -> None:
    claim = kubernetes["PersistentVolumeClaim"]["metadata"]["name"]
    for pod in pods(kubernetes["RayCluster"]):
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        for container in pod["containers"]:
            mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
            assert mounts.keys() <= volumes.keys()
            variables = {variable["name"]: variable.get("value") for variable in container["env"]}
            assert variables.keys() == {"AUTOML_STORAGE", "AUTOML_ARTIFACTS"}
            assert variables["AUTOML_ARTIFACTS"] == mounts["artifacts"]
            assert container["resources"]["requests"] == container["resources"]["limits"]
        assert volumes["artifacts"]["persistentVolumeClaim"]["claimName"] == claim


def test_manifest_puts_trials_on_gpus_and_none_on_the_head(kubernetes: Mapping[str, Mapping[str, Any]]) -> None:
    spec = kubernetes["RayCluster"]["spec"]
    assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    (group,) = spec["workerGroupSpecs"]
    (container,) = group["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 1


def test_slurm_script_is_bash() -> None:
    subprocess.run(["bash", "-n", SCRIPT], check=True)


def test_slurm_script_says_what_has_to_be_set(tmp_path: Path) -> None:
    ended = subprocess.run(
        ["bash", SCRIPT], cwd=tmp_path, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True
    )
    assert ended.returncode != 0
    assert "AUTOML_STORAGE: set it to the URL of a PostgreSQL" in ended.stderr


@pytest.fixture
def job(tmp_path: Path) -> Mapping[str, str]:
    """The environment of a job on two machines, both of them this one; `srun` leaves its options out."""
    programs = tmp_path / "bin"
    programs.mkdir()
    stand_ins = {
        "scontrol": '[ "$1 $2" = "show hostnames" ] && printf "%s\\n" first second',
        "srun": 'while [ "${1#--}" != "$1" ]; do shift; done; exec "$@"',
    }
    for name, text in stand_ins.items():
        (programs / name).write_text(f"#!/bin/bash\n{text}\n")
        (programs / name).chmod(0o755)
    return environment_of(
        tmp_path,
        PATH=f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        SLURM_JOB_ID=str(os.getpid()),
        SLURM_JOB_NODELIST="first,second",
        SLURM_CPUS_ON_NODE="1",
        AUTOML_STORAGE=f"sqlite:///{tmp_path}/studies.db",
        AUTOML_ARTIFACTS=str(tmp_path / "artifacts"),
    )


def slurm_job(folder: Path, environment: Mapping[str, str], *arguments: str | int) -> Command:
    return Command(*arguments, folder=folder, environment=environment, program=("bash", str(SCRIPT)))


@pytest.mark.ray
@pytest.mark.slow
def test_slurm_script_searches_on_all_machines_and_leaves_nothing(tmp_path: Path, job: Mapping[str, str]) -> None:
    arguments = ("--space", "tests.helpers.toy", "--metric", "loss", "--study", "j", "--trials", 3, "--epochs", 2)
    with slurm_job(tmp_path, job, *arguments, "--procs-per-trial", 2, "--spread", "--cpus-per-trial", 2) as command:
        ended = command.ended()
        until(lambda: not command.family(), 10.0, "the end of all processes")
    assert ended.code == 0, ended
    trials = Storage(job["AUTOML_STORAGE"]).open_study("j").trials()
    assert {trial.state for trial in trials} <= {TrialState.COMPLETE, TrialState.PRUNED}
    assert len(trials) == 3


@pytest.mark.ray
@pytest.mark.slow
def test_slurm_script_whose_time_is_over_pauses_the_search(tmp_path: Path, job: Mapping[str, str]) -> None:
    arguments = ("--space", "tests.helpers.slow_toy", "--metric", "loss", "--study", "j", "--epochs", 50)
    with slurm_job(tmp_path, job, *arguments) as command:
        until(lambda: "started epochs" in command.err, 90.0, "the first trial")
        command.send(signal.SIGTERM)
        ended = command.ended(60.0)
        until(lambda: not command.family(), 10.0, "the end of all processes")
    assert ended.code == 143, ended
    states = {trial.state for trial in Storage(job["AUTOML_STORAGE"]).open_study("j").trials()}
    assert states == {TrialState.PAUSED}
