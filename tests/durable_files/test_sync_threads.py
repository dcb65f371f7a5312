"""Work that is done side by side, by as many threads as there are, and what becomes of errors."""

import os
from threading import Barrier, get_ident

import pytest

from headwater.durable_files import sync_threads
from headwater.durable_files.files import SYNC_THREADS
from headwater.durable_files.sync_threads import SyncThreads


def fail() -> None:
    raise OSError(5, "told to")


def test_all_of_it_is_done_at_the_same_time() -> None:
    meeting = Barrier(7)
    assert SyncThreads().run([lambda: (meeting.wait(30), None)[1]] * 7) == []


def test_every_error_comes_back_and_the_rest_is_done() -> None:
    done: list[int] = []
    errors = SyncThreads().run([fail, lambda: done.append(1), fail, lambda: done.append(2)])
    assert sorted(done) == [1, 2]
    assert [type(error) for error in errors] == [OSError, OSError]


def test_where_the_system_gives_no_threads_the_caller_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(sync_threads, "start_new_thread", refused)
    callers: list[int] = []
    assert SyncThreads().run([lambda: callers.append(get_ident())] * 3) == []
    assert callers == [get_ident()] * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_of_a_fork_starts_its_own() -> None:
    threads = SYNC_THREADS
    assert threads.run([lambda: None] * 3) == []
    child = os.fork()
    if not child:
        done: list[int] = []
        threads.run([lambda: done.append(1)] * 3)
        os._exit(0 if len(done) == 3 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
