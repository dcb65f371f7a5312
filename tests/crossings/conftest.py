"""The outcomes of a place: it is run once, when its first cell is tested, with the cells that this run of pytest has."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from crossings import places
from crossings.run import Outcomes, OutcomesOf, Run
from crossings.table import Cell, Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLACE_TIMEOUT = 240.0  # seconds; two or three on a quiet machine, ten with Spark


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    from headwater.spark import session

    running = session("crossings", master="local[2]", brief=True)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def outcomes_of(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> OutcomesOf:
    wanted: dict[str, list[Cell]] = defaultdict(list)
    for item in request.session.items:
        cell = item.callspec.params.get("cell") if hasattr(item, "callspec") else None
        if isinstance(cell, Cell):
            wanted[cell.place.key].append(cell)
    done: dict[str, Outcomes] = {}
    again: set[str] = set()

    def outcomes(place: Place) -> Outcomes:
        if place.key in done and done[place.key].disappointing and place.key not in again:
            again.add(place.key)  # the first cell that failed is run a second time: so is its place, once
            del done[place.key]
        if place.key not in done:
            folder, cells = tmp_path_factory.mktemp(place.key), wanted[place.key]
            session = request.getfixturevalue("spark") if any("spark" in cell.markers for cell in cells) else None
            try:
                done[place.key] = asyncio.run(take_place(place, cells, folder, session))
            except Exception as error:
                done[place.key] = Outcomes(f"{type(error).__name__}: {error}")
                raise
        return done[place.key]

    return outcomes


async def take_place(
    place: Place, cells: Sequence[Cell], folder: Path, spark: "SparkSession | None" = None
) -> Outcomes:
    """With an Iggy face a place is taken twice: without accounts, and with them for what comes from another account."""
    outcomes = Outcomes()
    for accounts in (False, True) if place.iggy else (True,):
        chosen = [cell for cell in cells if not place.iggy or (cell.way_in.key == "service-import") == accounts]
        if not chosen:
            continue
        async with asyncio.timeout(PLACE_TIMEOUT), AsyncExitStack() as stack:
            world = await places.FUNCTIONS[place.key](stack, place, folder / f"accounts-{accounts}", accounts)
            world.spark = spark
            await world.make_streams()
            outcomes.of |= (await Run(world, chosen).outcomes()).of
    return outcomes
