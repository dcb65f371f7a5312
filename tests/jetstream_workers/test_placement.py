"""Which worker a stream lives on, and which stream a request names."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.jetstream.requests import find_call
from headwater.jetstream_state.store import file_stem
from headwater.jetstream_workers.placement import owner_of, owner_of_folder, stream_in
from headwater.server.refusals import api_verbs, unserved_routes


@settings(max_examples=25)
@given(st.text(min_size=1, max_size=20), st.sampled_from(["", "account-A"]), st.integers(1, 64))
def test_the_owner_is_one_of_the_workers_and_that_of_the_folder(name: str, account: str, count: int) -> None:
    owner = owner_of(account, name, count)
    assert 1 <= owner <= count
    assert owner == owner_of_folder(account, file_stem(name), count)


def test_owners_are_the_same_in_every_release_and_spread() -> None:
    assert [owner_of("", f"S{n}", 3) for n in range(9)] == [1, 3, 2, 1, 3, 2, 2, 3, 3]
    found = [owner_of("account-A", f"S{n}", 4) for n in range(1000)]
    assert all(150 < found.count(worker) < 350 for worker in (1, 2, 3, 4))


@pytest.mark.parametrize(("verb", "_kind"), api_verbs())
def test_every_request_names_the_stream_that_it_is_served_for(verb: str, _kind: str) -> None:
    subject = f"$JS.API.{verb}".replace("<stream>", "orders").replace("<consumer>", "c").replace("[.<subject>]", ".a.b")
    call = find_call(unserved_routes(), subject.encode(), b"", b"", b"")
    named = b"orders" if "<stream>" in verb else b""
    assert stream_in(subject.encode()) == named
    assert call is None or call.names[:1] == ([named.decode()] if named else [])
