import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import RemoteProtocolError
from headwater.model.record import Record
from headwater.wire.peer_documents import ConnectForm, InfoForm, SubjectLists


class Info(Record, frozen=False):
    name: str = ""
    port: int = 0
    imports: SubjectLists | None = None
    exports: SubjectLists | None = None
    urls: tuple[str, ...] | None = None


class Connect(Record, frozen=False, secret=("password",)):
    echo: bool = False
    password: str = ""


INFO = InfoForm(Info, "peer", {"urls": ()})
CONNECT = ConnectForm(Connect, "peer", ("echo",))
subjects = st.lists(st.text(st.characters(exclude_categories=["Cs"]))).map(tuple)
lists = st.none() | st.builds(SubjectLists, allow=subjects, deny=subjects)


@given(st.builds(Info, name=st.text(), port=st.integers(), imports=lists, exports=lists, urls=st.none() | subjects))
def test_info_round_trips(info: Info) -> None:
    op = INFO.encode(info)
    assert op.startswith(b"INFO {")
    assert op.endswith(b"} \r\n")
    assert INFO.decode(op[5:-3]) == info


def test_info_leaves_out_defaults_and_names_lists_as_on_the_wire() -> None:
    info = Info(port=1, exports=SubjectLists(deny=("a.>",)))
    assert INFO.encode(info) == b'INFO {"port":1,"export":{"deny":["a.>"]}} \r\n'


def test_connect_always_has_fields_whose_absence_would_mean_true() -> None:
    assert CONNECT.encode(Connect(password="x")) == b'CONNECT {"echo":false,"pass":"x"}\r\n'


@pytest.mark.parametrize("json", [b"[]", b"{", b'{"port":"1"}', b'{"import":[]}', b'{"urls":[1]}'])
def test_info_of_another_form_is_an_error_that_shows_it(json: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match=r"^peer INFO cannot be read") as caught:
        INFO.decode(json)
    assert caught.value.value == json


def test_connect_of_another_form_is_an_error_without_the_password() -> None:
    with pytest.raises(RemoteProtocolError, match=r"^peer CONNECT cannot be read") as caught:
        CONNECT.decode(b'{"echo":1,"pass":"s3cret"}')
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None
