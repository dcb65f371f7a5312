"""Every command in every era: read as it was written, refused when it is cut, and unknown where the era had it not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.iggy_values import values

from headwater.errors import IggyError
from headwater.iggy_wire import command_codec
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Code
from headwater.iggy_wire.eras import PROTOCOL, Era
from headwater.iggy_wire.identifiers import Identifier

ROWS = [(code, era) for code, versions in command_codec.LAYOUTS.items() for era, _ in versions]


@given(st.data(), st.sampled_from(ROWS))
def test_a_command_is_read_as_it_was_written(data: st.DataObject, row: tuple[Code, Era]) -> None:
    code, era = row
    command = data.draw(values(command_codec.layout_of(code, era)))
    written = command_codec.layout_of(code, era).write(command)
    assert command_codec.decode(code, written, era) == command


@given(st.data(), st.sampled_from(ROWS))
def test_what_is_cut_off_is_refused_or_another_command(data: st.DataObject, row: tuple[Code, Era]) -> None:
    code, era = row
    layout = command_codec.layout_of(code, era)
    written = layout.write(data.draw(values(layout)))
    cut = written[: data.draw(st.integers(0, max(0, len(written) - 1)))]
    try:
        found = command_codec.decode(code, cut, era)
    except IggyError:
        return
    assert layout.write(found) == cut  # only where the last field is the rest of the request


@given(st.sampled_from(list(Code)), st.sampled_from(list(Era)), st.binary(max_size=80))
def test_any_bytes_are_a_command_or_refused(code: Code, era: Era, raw: bytes) -> None:
    try:
        found = command_codec.decode(code, raw, era)
    except IggyError:
        return
    assert command_codec.decode(code, command_codec.layout_of(code, era).write(found), era) == found


def test_a_command_belongs_to_the_eras_from_its_first_on() -> None:
    for code, versions in command_codec.LAYOUTS.items():
        for era in Era:
            if era >= versions[0][0]:
                assert command_codec.layout_of(code, era) is [own for first, own in versions if first <= era][-1]
            else:
                with pytest.raises(IggyError) as caught:
                    command_codec.layout_of(code, era)
                assert caught.value.name == "invalid_command"


S, T = Identifier("s"), Identifier("t")


def test_logins_have_a_code_of_their_own_today() -> None:
    by_name = c.Login("iggy", "iggy", version="0.11.0", protocol=PROTOCOL, sdk="headwater")
    by_token = c.LoginWithToken("token", version="0.11.0", protocol=PROTOCOL, sdk="headwater")
    assert (command_codec.code_of(by_name, Era.C3), command_codec.code_of(by_name)) == (38, 40)
    assert (command_codec.code_of(by_token, Era.C3), command_codec.code_of(by_token)) == (44, 45)
    for login in (by_name, by_token):
        assert command_codec.decode_login(command_codec.encode(login, Era.V)[1]) == login


def test_a_login_of_another_protocol_is_known_by_its_number_whatever_follows() -> None:
    with pytest.raises(IggyError) as caught:
        command_codec.decode_login((13 << 10).to_bytes(4, "little") + b"\xff" * 40)
    assert caught.value.name == "incompatible_protocol_version"
    assert "0.13.0" in caught.value.message and "0.12.2" in caught.value.message


def test_bytes_behind_a_command_are_ignored_from_the_era_on_in_which_servers_do() -> None:
    for era in (Era.C2, Era.C3, Era.V):
        code, body = command_codec.encode(c.DeleteTopic(S, T), era)
        assert command_codec.decode(code, body + b"\1\2", era) == c.DeleteTopic(S, T)
    code, body = command_codec.encode(c.DeleteTopic(S, T), Era.B)
    with pytest.raises(IggyError):
        command_codec.decode(code, body + b"\1\2", Era.B)


def test_a_classic_login_may_say_its_version_or_not() -> None:
    for era in (Era.A, Era.B):
        login = c.Login("iggy", "secret", "0.9.0" if era is Era.B else "")
        assert command_codec.decode_classic_login(command_codec.encode(login, era)[1]) == login
