"""Work on several tables at once: threads of the driver, each with a Spark session and a scheduler pool of its own.

A session opens a catalog with connections of its own. Where no setting differs from table to table, one serves all.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TypeVar

from pyspark.sql import SparkSession

from penstock_spark import session as sessions

Order = TypeVar("Order")
Result = TypeVar("Result")


def threads_for(spark: SparkSession, busy: int, workers: int) -> int:
    """Return how many threads each of the tables that are worked on at once may take."""
    return max(1, _driver_cores(spark) // max(1, min(busy, workers)))


def at_once(
    spark: SparkSession,
    catalog: str,
    environment: Mapping[str, str],
    work: Callable[[SparkSession, Order], Result],
    orders: Sequence[Order],
    *,
    workers: int,
    size: Callable[[Order], int] | None = None,
    shared: SparkSession | None = None,
) -> list[Result]:
    """Carry out the orders, the largest first where `size` gives it, and return the results in the orders' own order.

    With a `shared` session all threads work in this one.
    """
    own = threading.local()

    def prepare() -> None:
        own.session = shared or lent.enter_context(sessions.worker(spark, catalog, environment))
        sessions.activate(own.session)
        # Inside one pool Spark runs first come, first served: only a pool per thread shares the cores fairly.
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", threading.current_thread().name)

    with ExitStack() as lent:
        threads = ThreadPoolExecutor(workers, thread_name_prefix="penstock", initializer=prepare)
        try:
            places = list(range(len(orders)))
            if size:
                places.sort(key=lambda place: size(orders[place]), reverse=True)
            done = {place: threads.submit(lambda order: work(own.session, order), orders[place]) for place in places}
            return [done[place].result() for place in range(len(orders))]
        finally:
            threads.shutdown(cancel_futures=True)


def _driver_cores(spark: SparkSession) -> int:
    """Return the cores of the driver's own process: what its container leaves it, and a local master's limit."""
    cores: int = spark.sparkContext._jvm.java.lang.Runtime.getRuntime().availableProcessors()
    local = spark.sparkContext.master.startswith("local")
    return min(cores, spark.sparkContext.defaultParallelism) if local else cores
