#!/usr/bin/python3
"""Offers requests open-loop at a rate, whatever becomes of them: offer.py PORT RATE SECONDS.

Prints `good=` (200 within a second, per second of the second half), `refused=`, `failed=`, and the
p99 of the good ones. Each request is its own task on a pooled connection; the pool is bounded, and
what finds no connection counts as failed.
"""

import asyncio
import sys
import time

PATIENCE = 1.0


async def one(port, idle, counts, started):
    if idle:
        reader, writer = idle.pop()
    else:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET / HTTP/1.1\r\nhost: offer\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        await reader.readexactly(length)
        status = int(head.split(b" ", 2)[1])
        if b"connection: close" in head.lower():
            writer.close()
        else:
            idle.append((reader, writer))
    except BaseException:
        writer.close()
        raise
    counts.append((started, time.monotonic() - started, status))


async def guarded(port, idle, counts, failed):
    started = time.monotonic()
    try:
        await asyncio.wait_for(one(port, idle, counts, started), PATIENCE)
    except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError):
        failed.append(started)


async def main(port, rate, seconds):
    idle, counts, failed, tasks = [], [], [], set()
    begin = time.monotonic()
    sent = 0
    while (now := time.monotonic() - begin) < seconds:
        while sent < now * rate:
            if len(tasks) < 4000:
                task = asyncio.create_task(guarded(port, idle, counts, failed))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            else:
                failed.append(time.monotonic())
            sent += 1
        await asyncio.sleep(0.002)
    await asyncio.gather(*tasks)
    half = begin + seconds / 2
    good = sorted(took for at, took, status in counts if status == 200 and at >= half)
    refused = sum(1 for at, _, status in counts if status in (429, 503, 504) and at >= half)
    lost = sum(1 for at in failed if at >= half)
    p99 = 1000 * good[int(0.99 * (len(good) - 1))] if good else 0
    print(f"good={len(good) / (seconds / 2):.1f} refused={refused / (seconds / 2):.1f} "
          f"failed={lost / (seconds / 2):.1f} p99_ms={p99:.1f}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])))
