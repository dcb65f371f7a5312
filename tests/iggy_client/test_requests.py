"""The counters of a connection, in the headers of its requests."""

from headwater.iggy_client.requests import Requests
from headwater.iggy_wire import vsr_frames
from headwater.iggy_wire.commands import Code


def written(requests: Requests, code: Code) -> tuple[int, int]:
    frame = requests.write(code, [])
    found = vsr_frames.find_request(frame, 0, len(frame))
    assert isinstance(found, vsr_frames.Request)
    return found.number, found.login


def test_a_log_in_has_neither_number_nor_login_though_another_came_before() -> None:
    """Upstream's server drops one that names the login before, and says nothing."""
    requests = Requests()
    assert written(requests, Code.LOGIN_REGISTER) == (0, 0)
    requests.login = 5
    assert [written(requests, code) for code in (Code.PING, Code.LOGOUT_USER)] == [(1, 5), (2, 5)]
    assert written(requests, Code.LOGIN_REGISTER_WITH_TOKEN) == (0, 0)
    requests.login = 9
    assert written(requests, Code.PING) == (3, 9)
