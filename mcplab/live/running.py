"""Running a coroutine from synchronous code: in a script, and in a cell of a running kernel."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


def run(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run ``make()`` to its end and return what it returns.

    Without a running loop: a fresh one. Inside a plain asyncio loop (a notebook's cell) that loop is used, made
    re-entrant by nest-asyncio2, which is applied here and not on import. Any other loop cannot be made so: then a
    thread has a loop of its own.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return fresh(make)
    if not isinstance(loop, asyncio.BaseEventLoop):
        return _in_thread(make)
    import nest_asyncio2

    nest_asyncio2.apply(loop)
    task = loop.create_task(make())
    try:
        with _interrupts(loop, task) as seen:
            while not task.done():
                loop.run_until_complete(asyncio.wait([task]))
    except BaseException:
        # What was not to be stopped gently must not leave the task, and the process that it owns, behind its back.
        while not task.done():
            task.cancel()
            loop.run_until_complete(asyncio.wait([task]))
        if not task.cancelled():
            task.exception()  # seen, so that no warning about it comes later
        raise
    if seen:
        if not task.cancelled():
            task.exception()
        raise KeyboardInterrupt
    return task.result()


@contextlib.contextmanager
def _interrupts(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> Iterator[list[int]]:
    """Turn SIGINT into a cancellation of ``task`` for a while; yields the list of those that came.

    A KeyboardInterrupt could arise anywhere, also between the start of a process and the note that it is ours.
    ``asyncio.Runner`` does the same in a script. The second one cancels the shut-down, which then kills at once.
    """
    seen: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield seen
        return

    def on_interrupt(number: int, frame: Any) -> None:
        seen.append(number)
        loop.call_soon_threadsafe(task.cancel)

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """SIGTERM and SIGHUP end what was started and remove its folder, as SIGINT does; the status is 128 + n.

    For a program's main thread. What a parent has ignored (``nohup``) stays ignored.
    """

    def leave(number: int, _: object) -> None:
        sys.exit(128 + number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, leave) for number in numbers if signal.getsignal(number) != signal.SIG_IGN}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def fresh(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """``asyncio.run`` in a thread without a loop; not by that name, which nest-asyncio2 makes leak loops."""
    with asyncio.Runner() as runner:
        return runner.run(make())


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
            outcome.append(fresh(owned))
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
