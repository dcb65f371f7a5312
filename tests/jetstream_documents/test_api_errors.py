"""The table of errors: nats-server's numbers, each once, with texts that can be filled in."""

import string

import pytest

from headwater.jetstream_documents.api_errors import ERRORS, api_error


def test_no_two_errors_share_a_number_and_a_text() -> None:
    assert len({(number, text) for _, number, text in ERRORS.values()}) == len(ERRORS)
    assert all(10_000 < number < 10_300 for _, number, _ in ERRORS.values())
    assert {code for code, _, _ in ERRORS.values()} <= {400, 404, 412, 429, 500, 503}


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_every_text_can_be_filled_in(name: str) -> None:
    code, number, text = ERRORS[name]
    fields = {field: "7" for _, field, _, _ in string.Formatter().parse(text) if field}
    error = api_error(name, **fields)
    assert (error.code, error.err_code) == (code, number)
    assert "{" not in error.description
