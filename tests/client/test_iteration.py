"""An iteration that is left: within `async with` it ends at once."""

import asyncio
from collections.abc import AsyncGenerator

from headwater.client.iteration import Iteration


class Numbers(Iteration[int]):
    def __init__(self) -> None:
        super().__init__()
        self.ended = 0

    async def _items(self) -> AsyncGenerator[int, None]:
        try:
            for number in range(3):
                yield number
        finally:
            self.ended += 1


def test_within_a_block_an_iteration_that_was_left_ends_with_the_block() -> None:
    async def main() -> None:
        numbers = Numbers()
        async with numbers:
            async for number in numbers:
                if number == 1:
                    break
            assert numbers.ended == 0
        assert numbers.ended == 1

    asyncio.run(main())


def test_each_iteration_begins_anew() -> None:
    async def main() -> None:
        numbers = Numbers()
        assert [number async for number in numbers] == [0, 1, 2]
        async with numbers:
            assert [number async for number in numbers] == [0, 1, 2]
        assert numbers.ended == 2

    asyncio.run(main())
