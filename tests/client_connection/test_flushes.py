import asyncio
from collections.abc import Callable

import pytest

from headwater.client_connection.flushes import MOST_REFUSALS, Flushes
from headwater.errors import AuthorizationError, ConnectionClosed


def in_loop(test: Callable[[Flushes], None]) -> None:
    async def body() -> None:
        test(Flushes())

    asyncio.run(body())


def refusal(text: str = "no") -> AuthorizationError:
    return AuthorizationError(text)


def test_what_was_refused_is_raised_by_the_next_flush_and_by_no_other() -> None:
    def test(flushes: Flushes) -> None:
        first, error = flushes.add(), refusal()
        flushes.answered()
        assert first.result() is None
        flushes.refuse(error)
        flushes.refuse(refusal("again"))
        second, third = flushes.add(), flushes.add()
        flushes.answered()
        flushes.answered()
        assert second.exception() is error
        assert third.result() is None

    in_loop(test)


def test_the_pong_of_a_sign_of_life_takes_no_refusal_away() -> None:
    def test(flushes: Flushes) -> None:
        flushes.refuse(refusal())
        flushes.add_sign_of_life()
        waiter = flushes.add()
        flushes.answered()
        assert not waiter.done()
        flushes.answered()
        with pytest.raises(AuthorizationError):
            waiter.result()

    in_loop(test)


def test_an_error_that_a_task_has_got_is_raised_by_no_flush() -> None:
    def test(flushes: Flushes) -> None:
        error, other = refusal("taken"), refusal("not taken")
        flushes.refuse(error)
        flushes.refuse(other)
        flushes.handed_over(error)
        waiter = flushes.add()
        flushes.answered()
        assert waiter.exception() is other

    in_loop(test)


def test_a_program_that_never_flushes_keeps_the_first_refusals_only() -> None:
    def test(flushes: Flushes) -> None:
        first = refusal("first")
        flushes.refuse(first)
        for _ in range(10 * MOST_REFUSALS):
            flushes.refuse(refusal())
        assert len(flushes._refused) == MOST_REFUSALS
        waiter = flushes.add()
        flushes.answered()
        assert waiter.exception() is first

    in_loop(test)


def test_a_lost_connection_fails_those_that_wait_and_a_late_pong_answers_nothing() -> None:
    def test(flushes: Flushes) -> None:
        waiter, lost = flushes.add(), ConnectionClosed("gone")
        flushes.fail(lost)
        assert waiter.exception() is lost
        assert len(flushes) == 0
        flushes.answered()

    in_loop(test)
