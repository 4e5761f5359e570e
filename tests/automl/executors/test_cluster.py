"""Joining clusters that exist, with advice where that is not possible, and private ones that are in nobody's way."""

import http.server
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
import ray
from ray._private import services

from automl.executors.ray import joining
from automl.executors.ray.errors import ClusterError
from automl.executors.ray.joining import address_to_join, why_not
from automl.executors.ray.probe import Answer, ask, split_address
from studies.storage import Storage
from studies.trial import TrialState
from tests.helpers.commands import Command, environment_of
from tests.helpers.ray_nodes import RayNode, token_in

pytestmark = pytest.mark.ray

REFUSED_IN_S = 15.0
LOAD_S = 5.0
"""How much longer it may take than promised, because other tests may hold the CPUs."""
TOKEN = "0123456789abcdef0123456789abcdef"
PYTHON = ".".join(map(str, sys.version_info[:3]))
SEARCH = ("search", "--space", "tests.helpers.toy", "--metric", "loss", "--epochs", 2, "--sampler", "random")
HERE = Answer(kind="cluster", ray=ray.__version__, python=PYTHON, hosts=("a",))


@pytest.fixture(scope="module")
def head() -> Iterator[RayNode]:
    with RayNode(token=TOKEN) as node:
        yield node


@pytest.fixture
def silent_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def web_port() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield server.server_port
        server.shutdown()


def refused(folder: Path, address: str, variables: Mapping[str, str]) -> str:
    """What a search says that cannot join, in time and with the exit code of a wrong command."""
    environment = environment_of(folder, **variables)
    with Command(*SEARCH, "--trials", 1, "--ray-address", address, folder=folder, environment=environment) as command:
        ended = command.ended(timeout_s=60.0)
        assert not command.family()
    assert ended.code == 2, ended
    assert ended.seconds < REFUSED_IN_S + LOAD_S
    assert "Traceback" not in ended.err
    said = [line for line in ended.err.splitlines() if not line.endswith(" ...")]
    assert len(said) == 1, "one line, without Ray's own"
    assert Storage(f"sqlite:///{folder}/automl-runs/studies.db").studies() == (), "nothing is left behind"
    return said[0]


def test_dead_address_is_refused_soon_with_advice(tmp_path: Path) -> None:
    said = refused(tmp_path, "127.0.0.1:1", {})
    assert said.startswith("automl: no Ray cluster at 127.0.0.1:1: ")
    assert "`ray start --head --port 1`" in said


@pytest.mark.slow
def test_listener_that_says_nothing_is_refused_soon_with_advice(tmp_path: Path, silent_port: int) -> None:
    said = refused(tmp_path, f"127.0.0.1:{silent_port}", {})
    assert f"something listens at 127.0.0.1:{silent_port} but does not answer as the head of a Ray cluster" in said
    assert "6379" in said


@pytest.mark.slow
def test_web_server_is_refused_soon_with_advice(tmp_path: Path, web_port: int) -> None:
    said = refused(tmp_path, f"127.0.0.1:{web_port}", {})
    assert "not that of the dashboard" in said


@pytest.mark.parametrize(
    "variables, found",
    [
        pytest.param({}, "no token is set here", id="none"),
        pytest.param(token_in("wrong" * 8), "the token that is set here is another one", id="wrong"),
        pytest.param({"RAY_AUTH_MODE": "token"}, "RAY_AUTH_MODE=token is set and no token is", id="forgotten"),
    ],
)
def test_token_that_does_not_fit_is_named(
    tmp_path: Path, head: RayNode, variables: Mapping[str, str], found: str
) -> None:
    said = refused(tmp_path, head.address, {"HOME": str(tmp_path), **variables})
    assert found in said
    assert "RAY_AUTH_TOKEN" in said


@pytest.mark.slow
def test_token_without_a_mode_is_enough_and_joined_cluster_goes_on(tmp_path: Path, head: RayNode) -> None:
    environment = environment_of(tmp_path, RAY_AUTH_TOKEN=TOKEN, RAY_TMPDIR=str(tmp_path))
    arguments = (*SEARCH, "--trials", 4, "--study", "shared", "--ray-address", head.address)
    with ExitStack() as both:
        commands = [both.enter_context(Command(*arguments, folder=tmp_path, environment=environment)) for _ in range(2)]
        for ended in [command.ended() for command in commands]:
            assert ended.code == 0, ended
    trials = Storage(f"sqlite:///{tmp_path}/automl-runs/studies.db").open_study("shared").trials()
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 4
    with pytest.MonkeyPatch.context() as patch:
        for name, value in token_in(TOKEN).items():
            patch.setenv(name, value)
        assert ask(head.address).kind == "cluster"


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_two_machines_started_by_hand_share_a_trial(tmp_path: Path) -> None:
    with RayNode(token=TOKEN) as head, RayNode(token=TOKEN, head=head.address):
        environment = environment_of(tmp_path, **token_in(TOKEN), RAY_ADDRESS=head.address)
        with Command(
            *SEARCH, "--trials", 2, "--procs-per-trial", 2, "--spread", "--study", "spread", "--ray-address", "auto",
            folder=tmp_path, environment=environment,
        ) as command:  # fmt: skip
            ended = command.ended()
    assert ended.code == 0, ended


def test_token_for_a_cluster_that_has_none_is_refused_with_advice(
    monkeypatch: pytest.MonkeyPatch, ray_cluster: None
) -> None:
    for name, value in token_in(TOKEN).items():
        monkeypatch.setenv(name, value)
    answer = ask(ray.get_runtime_context().gcs_address)
    assert answer == Answer(
        kind="cluster",
        has_token=True,
        needs_token=False,
        ray=ray.__version__,
        python=PYTHON,
        is_private=True,
        hosts=(socket.gethostname(),),
    )
    assert "RAY_AUTH_MODE=disabled" in str(why_not("h:6379", answer))


@pytest.mark.parametrize(
    "answer, words",
    [
        (Answer(kind="cluster", ray="2.59.0", python=PYTHON), ("Ray 2.59.0", f"Ray {ray.__version__}", "the same")),
        (Answer(kind="cluster", ray=ray.__version__, python="3.10.4"), ("Python 3.10.4", f"Python {PYTHON}")),
        (
            Answer(kind="cluster", ray=ray.__version__, python=PYTHON, is_here=False, hosts=("a", "b")),
            ("none of the cluster at h:6379 (a, b)", "`ray start --address h:6379`"),
        ),
    ],
    ids=["ray", "python", "elsewhere"],
)
def test_cluster_that_does_not_fit_is_described(answer: Answer, words: tuple[str, ...]) -> None:
    reason = why_not("h:6379", answer)
    assert reason is not None
    assert all(word in reason for word in words)


def test_cluster_that_fits_has_no_reason_against_it() -> None:
    assert why_not("h:6379", HERE) is None


@pytest.mark.parametrize("address", ["ray://head:10001", "head", "head:", ":6379", "head:65536", "http://head:8265"])
def test_address_of_another_form_is_refused(address: str) -> None:
    with pytest.raises(ClusterError, match="HOST:PORT"):
        address_to_join(address)


def test_address_of_ipv6_is_split() -> None:
    assert split_address("[::1]:6379") == ("::1", 6379)


@pytest.fixture
def nothing_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


@pytest.mark.usefixtures("nothing_is_noted")
def test_auto_without_a_cluster_is_refused_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "find_gcs_addresses", set)
    with pytest.raises(
        ClusterError, match="no Ray cluster was found on this machine; start one with `ray start --head`"
    ):
        address_to_join("auto")


@pytest.mark.usefixtures("nothing_is_noted")
def test_auto_leaves_private_clusters_of_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "a:1": Answer(kind="cluster", ray=ray.__version__, python=PYTHON, is_private=True),
        "b:1": Answer(kind="token"),
        "c:1": HERE,
    }
    monkeypatch.setattr(services, "find_gcs_addresses", lambda: set(answers))
    monkeypatch.setattr(joining, "ask", answers.__getitem__)
    assert address_to_join("auto") == "c:1"


@pytest.mark.usefixtures("nothing_is_noted")
def test_auto_takes_what_ray_start_has_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text("noted:6379\n")
    monkeypatch.setattr(joining, "ask", lambda address: HERE)
    assert address_to_join("auto") == "noted:6379"
    monkeypatch.setenv("RAY_ADDRESS", "said:6379")
    assert address_to_join("auto") == "said:6379"


_PRIVATE = """
import os, signal, subprocess
from automl.env import prepare_private_cluster
prepare_private_cluster()
import psutil, ray
from automl.executors.ray.cluster import Cluster
handler = signal.getsignal(signal.SIGTERM)
cluster = Cluster(None)
print(*(node.cpus > 0 for node in cluster.nodes()))
print(signal.getsignal(signal.SIGTERM) == handler)
family = psutil.Process().children(recursive=True)
print({process.name() for process in family} >= {"gcs_server", "raylet"})
print(os.getpgid(0) in {os.getpgid(process.pid) for process in family})
servers = [child for child in psutil.Process().children() if child.name() != "sleep"]
print(all(os.getsid(server.pid) == server.pid for server in servers), cluster.is_alive())
program = subprocess.Popen(["sleep", "1000"], start_new_session=True)
cluster.close()
cluster.close()
print(ray.is_initialized(), [process for process in family if process.is_running()], program.poll())
program.kill()
"""


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Sockets of Ray's lie below it, and the system allows them 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:
        yield Path(folder)


def run_private(folder: Path, temporary: Path, program: str = _PRIVATE) -> subprocess.CompletedProcess[str]:
    environment = environment_of(folder, RAY_ADDRESS="127.0.0.1:1", TMPDIR=str(temporary), HOME=str(folder))
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, timeout=90
    )


def test_private_cluster_is_out_of_the_way_and_leaves_nothing(tmp_path: Path, short_folder: Path) -> None:
    (short_folder / "ray").mkdir()
    (short_folder / "ray" / "ray_current_cluster").write_text("127.0.0.1:1\n")
    ended = run_private(tmp_path, short_folder)
    assert ended.stdout.splitlines() == ["True", "True", "True", "False", "True True", "False [] None"], ended.stderr
    assert ended.stderr == ""
    assert not (tmp_path / ".ray").exists(), "no token is left in the home folder"


_SIGNALLED = """
import os, signal
from automl.env import prepare_private_cluster
from automl.interrupt import Interrupt
prepare_private_cluster()
from automl.executors.ray.cluster import Cluster
with Interrupt() as interrupt:
    cluster = Cluster(None)
    os.kill(os.getpid(), signal.SIGTERM)
    print(interrupt.count, flush=True)
    cluster.close()
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_signal_is_the_programs_own_while_a_private_cluster_is_up(tmp_path: Path, short_folder: Path) -> None:
    ended = run_private(tmp_path, short_folder, _SIGNALLED)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGTERM, "1\n", "")


def test_temporary_folder_of_a_long_name_is_refused_with_advice(tmp_path: Path) -> None:
    long = tmp_path / ("long" * 20)
    long.mkdir()
    said = run_private(tmp_path, long).stderr.splitlines()[-1]
    assert f"ClusterError: Ray cannot put its sockets below {long}/ray, whose path is too long" in said
    assert "set RAY_TMPDIR to a folder with a short path" in said


def test_refusal_names_every_cluster_that_auto_has_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    began = time.monotonic()
    with pytest.raises(ClusterError, match=r"no cluster can be joined:\n  - no Ray cluster at 127\.0\.0\.1:1"):
        address_to_join("auto")
    assert time.monotonic() - began < REFUSED_IN_S
