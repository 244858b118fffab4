"""A TCP relay that delays every byte, in both directions: a long way between two programs."""

import asyncio
import threading

PIECE = 1 << 16
HELD = 4 << 20  # bytes on their way in one direction; then the relay reads no more


class LongWire:
    """Listens on `port`; each direction to 127.0.0.1:`to` takes `seconds`."""

    def __init__(self, to, seconds):
        self.to, self.seconds = to, seconds
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.server = self._in_loop(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self.server.sockets[0].getsockname()[1]

    def _in_loop(self, what):
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(20)

    async def _serve(self, reader, writer):
        back_reader, back_writer = await asyncio.open_connection("127.0.0.1", self.to)
        await asyncio.gather(self._carry(reader, back_writer), self._carry(back_reader, writer))

    async def _carry(self, reader, writer):
        held = asyncio.Queue(HELD // PIECE)

        async def arrive():
            while (due := await held.get())[1]:
                await asyncio.sleep(due[0] - self.loop.time())
                writer.write(due[1])
                await writer.drain()
            writer.close()

        arrives = asyncio.create_task(arrive())
        try:
            while data := await reader.read(PIECE):
                await held.put((self.loop.time() + self.seconds, data))
        except OSError:
            pass
        await held.put((0, b""))
        try:
            await arrives
        except OSError:
            pass

    def end(self):
        async def stop():
            self.server.close()
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self._in_loop(stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(20)
        self.loop.close()
