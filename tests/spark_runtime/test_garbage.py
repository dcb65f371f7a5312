"""headwater.spark_runtime.garbage: a worker's long-lived objects are left out of its garbage collections, once."""

import gc
from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark")

from headwater.spark_runtime import garbage


@pytest.fixture(autouse=True)
def not_settled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(garbage, "_settled", set())
    before = gc.get_freeze_count()
    yield
    if not before:
        gc.unfreeze()


class InATask:
    """Stands for pyspark's TaskContext inside a worker."""

    @staticmethod
    def get() -> object:
        return object()


def test_a_process_that_is_no_worker_is_left_alone() -> None:
    before = gc.get_freeze_count()
    assert not garbage.settle()
    assert gc.get_freeze_count() == before


def test_a_worker_is_settled_after_its_first_task_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "TaskContext", InATask)
    assert garbage.settle()
    assert gc.get_freeze_count() > 1000
    assert not garbage.settle()


def test_what_is_frozen_is_still_freed_with_its_last_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "TaskContext", InATask)
    kept: list[list[int]] = [[] for _ in range(100)]
    assert garbage.settle()
    before = gc.get_freeze_count()
    del kept
    assert gc.get_freeze_count() <= before - 100
