"""Lines become events by their content alone: the same input twice is the same events twice."""

import gzip
import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cli.demo_events import COMMIT, EVENT, EventLines, git_history, read_lines
from headwater.cloudevents import CloudEvent
from headwater.errors import EnvironmentProblem
from headwater.model.subject import validate_subject

LINE = b'{"repo":"nats-io/nats.go","sha":"681e","committed_at":"2012-08-15T05:55:00-07:00","subject":"x","files":[]}'


def read(*lines: bytes) -> tuple[list[tuple[str, CloudEvent]], EventLines]:
    reader = EventLines("web hooks.jsonl")
    return list(reader.events(lines)), reader


def test_a_commit_becomes_an_event_named_by_repository_and_hash() -> None:
    ((subject, event),), _ = read(LINE)
    assert subject == "events.commit.nats-io_nats_go"
    assert (event.type, event.source, event.id) == (COMMIT, "/nats-io/nats.go", "681e")
    assert event.time_text == "2012-08-15T05:55:00-07:00"
    assert event.payload == LINE


def test_any_other_object_becomes_an_event_named_by_its_own_id_or_its_digest() -> None:
    made, _ = read(b'{"id":7,"a":1}', b'{"id":"x"}', b'{"a":1}', b'{"a":1}', b'{"id":true}')
    assert [event.type for _, event in made] == [EVENT] * 5
    assert [event.id for _, event in made[:2]] == ["7", "x"]
    assert made[3][1].id == made[2][1].id + "-2"
    assert len({event.id for _, event in made}) == 5
    assert made[0][1].source == "/web%20hooks.jsonl"


def test_lines_that_are_no_objects_are_counted_and_the_rest_goes_on() -> None:
    made, reader = read(LINE, b"not json", b"[1]", b"\xff", b"", b'{"a":1}')
    assert len(made) == 2
    assert reader.refused == 3
    assert reader.first_refusal.startswith("line 2: ")


def test_a_time_that_is_no_timestamp_refuses_the_line_and_names_the_attribute() -> None:
    made, reader = read(b'{"time":"yesterday"}', LINE)
    assert len(made) == 1
    assert "time" in reader.first_refusal


@given(st.lists(st.dictionaries(st.text(max_size=4), st.one_of(st.integers(0, 9), st.text(max_size=5)), max_size=3)))
def test_the_same_lines_give_the_same_events_on_valid_subjects(objects: list[dict[str, object]]) -> None:
    lines = [json.dumps(found).encode() for found in objects]
    first, again = read(*lines)[0], read(*lines)[0]
    assert first == again
    for subject, _ in first:
        validate_subject(subject)


def test_a_file_is_read_plain_or_compressed(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(LINE + b"\n")
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(LINE + b"\n"))
    assert list(read_lines(tmp_path / "a.jsonl")) == list(read_lines(tmp_path / "a.jsonl.gz")) == [LINE + b"\n"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "cut.gz").write_bytes(gzip.compress(LINE)[:-9])
    for path in (tmp_path / "none.jsonl", tmp_path / "cut.gz", tmp_path):
        with pytest.raises(EnvironmentProblem, match=path.name):
            list(read_lines(path))


def test_the_history_of_a_checkout_is_commits_oldest_first(tmp_path: Path) -> None:
    checkout = tmp_path / "a checkout"
    checkout.mkdir()

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.invalid", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(checkout), *identity, *arguments], check=True, capture_output=True)

    git("init", "-q")
    for subject in ("first: ünï", "second\tone"):
        (checkout / "file").write_text(subject + "\n")
        git("add", "file")
        git("commit", "-q", "-m", subject)
    commits = [json.loads(line) for line in git_history(checkout)]
    assert [commit["subject"] for commit in commits] == ["first: ünï", "second\tone"]
    assert commits[0]["repo"] == "a checkout"
    assert commits[0]["files"] == [{"path": "file", "added": 1, "deleted": 0}]
    assert "example" not in json.dumps(commits)
    (_, event), *_ = EventLines("x").events(git_history(checkout))
    assert event.id == commits[0]["sha"]


def test_a_folder_without_history_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="--events"):
        list(git_history(tmp_path))
