"""What a request gives as a time is kept as it is shown, or refused."""

import pytest

from headwater.errors import JetStreamError
from headwater.jetstream_documents.given_times import pause_time, start_time


def test_a_start_keeps_its_zone_and_the_end_of_a_pause_is_in_utc() -> None:
    assert start_time("2020-01-01T00:00:00.50+01:00") == "2020-01-01T00:00:00.5+01:00"
    assert pause_time("2020-01-01T00:00:00.50+01:00") == "2019-12-31T23:00:00.5Z"
    assert (start_time(None), pause_time(None), pause_time("0001-01-01T00:00:00Z")) == (None, None, None)


def test_what_is_no_time_is_invalid_json() -> None:
    for read in (start_time, pause_time):
        with pytest.raises(JetStreamError) as caught:
            read("noon")
        assert caught.value.err_code == 10025
