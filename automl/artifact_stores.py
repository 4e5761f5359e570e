"""Whether the URL of a store can hold artifacts: of a kind that fsspec knows, installed, without secrets, writable."""

import re
import secrets

from automl.errors import InvalidSpecError
from search_spaces.errors import did_you_mean
from trainers.artifact_files import write_file
from trainers.errors import ArtifactStoreError

__all__ = ["check_store_can_be_written", "checked_url"]

_URL = re.compile(r"(?P<protocol>[^:/]*)://(?P<rest>.*)", re.DOTALL)
_USUAL = ("s3", "gs", "abfs", "hdfs", "sftp")
_PACKAGES = {"smbclient": "smbprotocol"}
"""Packages that are not called what they are imported as."""


def checked_url(url: str) -> str:
    """A URL that artifacts can be kept below, without a slash at its end; nothing is connected to.

    Raises:
        ValueError: its protocol is unknown or not installed, or it holds a password.
    """
    match = _URL.fullmatch(url)
    if match is None:
        raise ValueError(f"{_without_secrets(url)!r} is no URL of the form PROTOCOL://PLACE")
    protocol, rest = match["protocol"], match["rest"]
    if "@" in rest and ":" in rest.partition("@")[0]:
        raise ValueError(
            f"{_without_secrets(url)} holds a password; give it where the store's own tools read it, in the "
            "environment or their file of credentials"
        )
    _check_installed(protocol)
    if not rest.strip("/") and protocol != "memory":
        raise ValueError(f"{url} names no place; give {protocol}://BUCKET_OR_HOST/FOLDER")
    return f"{protocol}://{rest.rstrip('/')}"


def check_store_can_be_written(url: str) -> None:
    """Write a small file below a URL and remove it, so that a store that refuses is known before a study is made.

    Raises:
        InvalidSpecError: it cannot be written, with the store's own words.
    """
    from fsspec.core import url_to_fs

    place = f"{url}/.automl-{secrets.token_hex(4)}"  # of a name that no other process tries at the same time
    try:
        write_file(place, lambda file: file.write(b"automl looks whether it can write here\n"))
        store, path = url_to_fs(place)
        store.rm_file(path)
    except (ArtifactStoreError, OSError) as error:
        raise InvalidSpecError(
            [f"artifacts: {error}; look at the name, and at the credentials of this machine"], "the specification"
        ) from error


def _check_installed(protocol: str) -> None:
    from fsspec.registry import available_protocols, get_filesystem_class

    known = available_protocols()
    if protocol not in known:
        raise ValueError(
            f"{protocol}:// is no store that is known;{did_you_mean(protocol, known)} usual: "
            f"{', '.join(f'{name}://' for name in _USUAL)}, or a folder"
        )
    try:
        get_filesystem_class(protocol)
    except ImportError as error:
        package = _package_of(error)
        raise ValueError(f"{protocol}:// needs a package that is not installed: pip install {package}") from error


def _package_of(error: ImportError) -> str:
    """The package that an import lacked; fsspec raises an error of its own in place of the import's."""
    cause = error.__cause__ if isinstance(error.__cause__, ImportError) else error
    module = (cause.name or "").partition(".")[0]
    return _PACKAGES.get(module, module)


def _without_secrets(url: str) -> str:
    return re.sub(r"(?<=://)[^/]*@", "***@", url)
