"""Stores of artifacts that are no folder: in memory, S3 where its packages are installed, and broken ones."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

__all__ = ["RefusingStore", "TornStore", "names_in", "store_url"]


@pytest.fixture(params=["memory", "s3"])
def store_url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty place in a store; on S3 (a server in this process) with `pip install s3fs moto[server]` only."""
    if request.param == "memory":
        yield f"memory://{uuid.uuid4().hex}"
        return
    pytest.importorskip("s3fs", reason="the test on S3 needs: pip install s3fs moto[server]")
    moto = pytest.importorskip("moto.server", reason="the test on S3 needs: pip install s3fs moto[server]")
    with _s3_server(moto, monkeypatch) as bucket:
        yield f"s3://{bucket}/runs"


@contextmanager
def _s3_server(moto: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        bucket = f"automl-{uuid.uuid4().hex}"
        fsspec.filesystem("s3", skip_instance_cache=True).mkdir(bucket)
        yield bucket
    finally:
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        server.stop()


def names_in(url: str) -> list[str]:
    """All files below a URL, relative to it."""
    store, path = fsspec.url_to_fs(url)
    store.invalidate_cache()
    base = path.rstrip("/") + "/"
    return sorted(name.removeprefix(base) for name in store.find(path))


class RefusingStore(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A store that this machine has no right to."""

    protocol = "refusing"

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise PermissionError("Access Denied")

    info = put_file = get_file = open = rm_file = exists = makedirs = _refuse


class TornStore(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A store whose connection breaks in the middle of every upload."""

    protocol = "torn"

    def put_file(self, lpath: str, rpath: str, *args: Any, **kwargs: Any) -> None:
        with open(lpath, "rb") as file:
            content = file.read()
        self.pipe_file(rpath, content[: len(content) // 2])
        raise ConnectionResetError("Connection reset by peer")


# By name, as an installed package does.
fsspec.register_implementation("refusing", f"{__name__}.RefusingStore", clobber=True)
fsspec.register_implementation("torn", f"{__name__}.TornStore", clobber=True)
