"""Running a coroutine from synchronous code: in a script, and in a cell of a running kernel."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run ``make()`` to its end and return what it returns.

    Without a running loop: ``asyncio.run``. Inside a plain asyncio loop (a notebook's cell) that loop is used, made
    re-entrant by nest-asyncio, which is applied here and not on import. Any other loop cannot be made so: then a
    thread has a loop of its own.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    if not isinstance(loop, asyncio.BaseEventLoop):
        return _in_thread(make)
    import nest_asyncio

    nest_asyncio.apply(loop)
    task = loop.create_task(make())
    try:
        return loop.run_until_complete(task)
    except BaseException:
        # An interrupted cell must not leave the task, and the process that it owns, running behind its back.
        while not task.done():
            task.cancel()
            try:
                loop.run_until_complete(asyncio.wait([task]))
            except KeyboardInterrupt:  # impatience: cancel again, which kills instead of waiting
                continue
        if not task.cancelled():
            task.exception()  # seen, so that no warning about it comes later
        raise


def _in_thread(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    outcome: list[T] = []
    failure: list[BaseException] = []
    runner: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []
    started = threading.Event()

    async def owned() -> T:
        task = asyncio.current_task()
        assert task is not None
        runner.append((asyncio.get_running_loop(), task))
        started.set()
        return await make()

    def body() -> None:
        try:
            outcome.append(asyncio.run(owned()))
        except BaseException as error:
            failure.append(error)
        finally:
            started.set()

    thread = threading.Thread(target=body, name="mcplab", daemon=True)
    thread.start()
    try:
        thread.join()
    except BaseException:
        started.wait()
        for loop, task in runner:
            if not loop.is_closed():
                loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    if failure:
        raise failure[0]
    return outcome[0]
