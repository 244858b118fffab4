"""The same server as peer_server.cc, by gRPC's Python library. peer_server.py [CERTIFICATE KEY]."""

import asyncio
import os
import pathlib
import sys

sys.path.insert(0, os.path.join(os.environ["WEIR_BUILD"], "tests/grpc"))
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
import grpc.aio  # noqa: E402
import health_pb2  # noqa: E402
import health_pb2_grpc  # noqa: E402
import peers_pb2  # noqa: E402
import peers_pb2_grpc  # noqa: E402

MESSAGE_BYTES_MAX = 64 << 20
LONGEST_SLEEP = 20.0
Response = health_pb2.HealthCheckResponse


class Peer(peers_pb2_grpc.PeerServicer):
    def __init__(self, health):
        self.health = health
        self.ended = []

    def begun(self, method, context):
        left = context.time_remaining()
        keys = [value for key, value in context.invocation_metadata() if key == "key"]
        call = peers_pb2.Call(method=method, keys=keys,
                              left_ms=-1 if left is None or left > 1e9 else int(left * 1000))
        context.add_done_callback(lambda _: self.ended.append(call))
        return call

    async def Echo(self, request, context):
        call = self.begun("Echo", context)
        context.set_trailing_metadata((*(("key", key) for key in call.keys),
                                       ("blob-bin", b"\x00\xff")))
        return request

    async def Split(self, request, context):
        self.begun("Split", context)
        for byte in request.data:
            yield peers_pb2.Piece(data=bytes((byte,)))

    async def Join(self, request_iterator, context):
        self.begun("Join", context)
        return peers_pb2.Piece(data=b"".join([piece.data async for piece in request_iterator]))

    async def Chat(self, request_iterator, context):
        self.begun("Chat", context)
        async for piece in request_iterator:
            yield peers_pb2.Piece(data=piece.data[::-1])

    async def fail(self, failure, context):
        # What this library knows no argument for is a key of the trailers.
        context.set_trailing_metadata((("why", "as asked"), ("why-bin", b"\x00\x01\xfe"),
                                       ("grpc-status-details-bin", failure.details)))
        code = next(code for code in grpc.StatusCode if code.value[0] == failure.code)
        await context.abort(code, failure.message)

    async def Fail(self, request, context):
        self.begun("Fail", context)
        await self.fail(request, context)

    async def FailLate(self, request, context):
        self.begun("FailLate", context)
        yield peers_pb2.Piece()
        await self.fail(request, context)

    async def sleep(self, call):
        try:
            await asyncio.sleep(LONGEST_SLEEP)
        except asyncio.CancelledError:
            call.cancelled = True
            raise

    async def Sleep(self, request, context):
        await self.sleep(self.begun("Sleep", context))
        return request

    async def Hold(self, request, context):
        call = self.begun("Hold", context)
        yield request
        await self.sleep(call)

    async def SetServing(self, request, _context):
        await self.health.set(Response.SERVING if request.serving else Response.NOT_SERVING)
        return peers_pb2.Piece()

    async def Tell(self, _request, _context):
        ended, self.ended = self.ended, []
        return peers_pb2.Journal(calls=ended)


class Health(health_pb2_grpc.HealthServicer):
    """Knows the whole server alone."""

    def __init__(self):
        self.status = Response.SERVING
        self.changed = asyncio.Condition()

    async def set(self, status):
        async with self.changed:
            self.status = status
            self.changed.notify_all()

    async def Check(self, request, context):
        if request.service:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        return Response(status=self.status)

    async def Watch(self, _request, _context):
        said = None
        while True:
            async with self.changed:
                await self.changed.wait_for(lambda: self.status != said)
                said = self.status
            yield Response(status=said)


async def serve(certificate=None, key=None):
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
                                      ("grpc.max_send_message_length", MESSAGE_BYTES_MAX)])
    health = Health()
    peers_pb2_grpc.add_PeerServicer_to_server(Peer(health), server)
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    port, tls_port = server.add_insecure_port("127.0.0.1:0"), 0
    if certificate:
        pair = tuple(pathlib.Path(path).read_bytes() for path in (key, certificate))
        tls_port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials((pair,)))
    await server.start()
    print(port, tls_port, flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
