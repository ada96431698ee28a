"""The same work on a Dask cluster. Parts do not depend on each other, and one that is made twice is kept once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from mcplab.model import MCPLabError

LOCAL = "local"
AHEAD = 4  # parts that wait in each worker's queue, so that a scheduler never holds millions


def on_cluster(scheduler: Any) -> Callable[..., Iterator[tuple[int, dict[str, Any]]]]:
    """A function that makes parts on the scheduler: ``local``, an address, or a ``distributed.Client``."""
    try:
        import distributed
        from distributed.client import FutureCancelledError
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise MCPLabError("a scheduler needs Dask: install the extra 'scale' (pip install 'mcplab[scale]')") from None

    def work(
        make: Callable[..., dict[str, Any]], home: str, todo: Sequence[tuple[int, Any]], options: Any
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        if not todo:
            return
        done = 0
        with ExitStack() as stack:
            try:
                client = _client(distributed, scheduler, stack)
                for one in _rounds(distributed, client, make, home, todo, options):
                    done += 1
                    yield one
            except MCPLabError:
                raise
            except (OSError, TimeoutError, CommClosedError, FutureCancelledError, KilledWorker) as error:
                told = " ".join(str(error).split())[:200] or type(error).__name__
                raise MCPLabError(
                    f"the scheduler was lost after {done} of {len(todo)} parts ({told}); "
                    "build again: what is done stays"
                ) from None

    return work


def _client(distributed: Any, scheduler: Any, stack: ExitStack) -> Any:
    if isinstance(scheduler, distributed.Client):
        return scheduler
    if scheduler == LOCAL:
        cluster = stack.enter_context(
            distributed.LocalCluster(threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
        )
        return stack.enter_context(distributed.Client(cluster, set_as_default=False))
    try:
        client = distributed.Client(scheduler, set_as_default=False, timeout="10s")
    except (OSError, TimeoutError, ValueError) as error:
        raise MCPLabError(f"scheduler {scheduler!r} cannot be reached ({' '.join(str(error).split())[:200]})") from None
    stack.callback(client.close)
    return client


def _rounds(
    distributed: Any, client: Any, make: Callable[..., Any], home: str, todo: Sequence[tuple[int, Any]], options: Any
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Some parts a worker at a time. The worker of a part that is lost is replaced by another by the scheduler."""
    waiting = iter(todo)
    running: dict[str, int] = {}
    results = distributed.as_completed(loop=client.loop)

    def more() -> None:
        workers = max(len(client.scheduler_info(n_workers=-1)["workers"]), 1)
        while len(running) < workers * AHEAD and (one := next(waiting, None)) is not None:
            number, (task, _) = one
            future = client.submit(make, home, task, options, pure=False)
            running[future.key] = number
            results.add(future)

    more()
    while running:
        future = next(results)
        said = future.result()
        yield running.pop(future.key), said
        more()
