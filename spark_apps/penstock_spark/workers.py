"""Work on several tables at once: threads of the driver, each with a Spark session and a scheduler pool of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pyspark.sql import SparkSession

from penstock_spark import session as sessions

Order = TypeVar("Order")
Result = TypeVar("Result")


def at_once(
    spark: SparkSession,
    catalog: str,
    environment: Mapping[str, str],
    work: Callable[[SparkSession, Order], Result],
    orders: Sequence[Order],
    *,
    size: Callable[[Order], int],
    workers: int,
) -> list[Result]:
    """Carry out the orders, the largest first, and return the results in the orders' own order."""
    own = threading.local()

    def prepare() -> None:
        own.session = sessions.worker(spark, catalog, environment)
        # Inside one pool Spark runs first come, first served: only a pool per thread shares the cores fairly.
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", threading.current_thread().name)

    threads = ThreadPoolExecutor(workers, thread_name_prefix="penstock", initializer=prepare)
    try:
        largest_first = sorted(range(len(orders)), key=lambda place: size(orders[place]), reverse=True)
        done = {place: threads.submit(lambda order: work(own.session, order), orders[place]) for place in largest_first}
        return [done[place].result() for place in range(len(orders))]
    finally:
        threads.shutdown(cancel_futures=True)
