"""Asks what it is told to on standard input, one JSON object per line, and answers on standard output.

{"id", "manner", "request"} -> {"id", "answer"} | {"id", "error": {"name", "message"}}
"""

import asyncio
import json
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

CONCURRENCY = 16


def serve(synchronous, asynchronous, client, async_client):
    """Ends with its input. Both are functions of a client and a request, by manner, which return the answer."""
    # From here on: what the interpreter says of the libraries' own imports is not about our streams.
    warnings.simplefilter("error")
    output = threading.Lock()
    loop = asyncio.new_event_loop()
    loop_thread = threading.Thread(target=loop.run_forever)
    loop_thread.start()

    def answer(line):
        task = json.loads(line)
        manner, request = task["manner"], task["request"]
        try:
            if manner in synchronous:
                result = {"answer": synchronous[manner](client, request)}
            else:
                told = asynchronous[manner](async_client, request)
                result = {"answer": asyncio.run_coroutine_threadsafe(told, loop).result()}
        except Exception as error:  # Whatever the client raises, warnings included, is the result.
            result = {"error": {"name": type(error).__name__, "message": str(error)}}
        with output:
            print(json.dumps({"id": task["id"], **result}), flush=True)

    async def close():
        await async_client.close()
        # Generators that an SDK did not read to their end are closed by tasks of their own.
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)

    with ThreadPoolExecutor(CONCURRENCY) as executor:
        for line in sys.stdin:
            executor.submit(answer, line)
    client.close()
    asyncio.run_coroutine_threadsafe(close(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    loop_thread.join()
    loop.close()
