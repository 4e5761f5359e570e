"""Runs a command and leaves nothing of it behind: a program of its own between a training and a person's script.

    python guard.py STATUS COMMAND...

The command's processes are ended (SIGTERM, and SIGKILL after five seconds) when standard input is closed, as it is
when the training has ended, or was killed; when this program gets SIGTERM; and what is left of them when the command
itself has ended. How that was is written to the file descriptor STATUS: `exit CODE`, `signal NUMBER` or `error TEXT`.

Needs the standard library, and psutil only where there are processes to end. It is started by its path, so that
it imports nothing of ours.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress

GRACE_S = 5.0
"""How long processes may take to end by themselves after SIGTERM."""
_SET_PDEATHSIG, _SET_SUBREAPER = 1, 36


def main(status: int, command: list[str]) -> None:
    """Run the command to its end, or to ours."""
    is_linux = sys.platform == "linux"
    libc = ctypes.CDLL(None, use_errno=True) if is_linux else None
    if libc is not None:
        libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0)  # whatever the command starts stays a descendant of ours
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda number, frame: None)  # what it is for comes by the pipe

    def end_with_us() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        if libc is not None:
            libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # we have one thread that starts anything

    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=end_with_us)
    except OSError as error:
        os.write(status, f"error {error.strerror}: {command[0]}".encode())
        return
    threading.Thread(target=_tell_end, args=(child, writer), daemon=True).start()
    select.select([0, reader], [], [])
    if child.poll() is None or _has_children():
        _end_descendants()
    code = child.wait()
    os.write(status, (f"signal {-code}" if code < 0 else f"exit {code}").encode())


def _tell_end(child: "subprocess.Popen[bytes]", writer: int) -> None:
    child.wait()
    os.write(writer, b"x")


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False  # the usual case, once the command has ended
    return True


def _end_descendants() -> None:
    """End the command and all that came of it, first with a word; they have the time together."""
    import psutil

    ourselves = psutil.Process()
    found = ourselves.children(recursive=True)
    for process in found:
        with suppress(psutil.Error):
            process.terminate()
    psutil.wait_procs(found, GRACE_S)
    for process in ourselves.children(recursive=True):  # those that are left, and what they have started since
        with suppress(psutil.Error):
            process.kill()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
