"""Clients and backends whose codecs are h11 and python3-h2, for tests that want to see every byte
of a message: body, framing, interim responses, trailers. A backend keeps a journal of what it
saw."""

import contextlib
import dataclasses
import hashlib
import socket
import ssl
import threading

import h11
import h2.config
import h2.connection
import h2.events
import h2.exceptions

PIECE = 60_000


@dataclasses.dataclass
class Message:
    """A request or a response. `length`: with content-length; else its end is marked."""

    fields: list = dataclasses.field(default_factory=list)
    body: bytes = b""
    trailers: list = dataclasses.field(default_factory=list)
    length: bool = True
    # of a request
    method: str = ""
    path: str = ""
    authority: str = ""
    expect: bool = False
    complete: bool = False
    # of a response
    status: int = 0
    interims: list = dataclasses.field(default_factory=list)  # (status, fields)
    until_close: bool = False  # HTTP/1.1: the end of the connection is the end of the body

    def values(self, name):
        return [value for key, value in self.fields if key == name]

    def digest(self):
        return len(self.body), hashlib.sha256(self.body).hexdigest()

    def framed_fields(self):
        if not self.length or self.values("content-length") or self.status in (204, 304):
            return self.fields
        if self.method and not self.body and self.method in ("GET", "HEAD"):
            return self.fields
        return [*self.fields, ("content-length", str(len(self.body)))]


def text(fields):
    decoded = [tuple(part.decode("latin-1") if isinstance(part, bytes) else part for part in pair)
               for pair in fields]
    return [(name.lower(), value) for name, value in decoded]


def pieces(body):
    return [body[at:at + PIECE] for at in range(0, len(body), PIECE)]


class Http2Peer:
    """Either side of one HTTP/2 connection. Sends within the windows."""

    def __init__(self, wire, client):
        self.wire = wire
        self.codec = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=client, header_encoding="latin-1"))
        self.outgoing = {}  # stream: [body, trailers]
        self.codec.initiate_connection()
        self.flush()

    def flush(self):
        for stream in list(self.outgoing):
            self._push(stream)
        data = self.codec.data_to_send()
        if data:
            self.wire.sendall(data)

    def _push(self, stream):
        body, trailers = self.outgoing[stream]
        while body:
            room = min(self.codec.local_flow_control_window(stream),
                       self.codec.max_outbound_frame_size)
            if room <= 0:  # below 0 after smaller SETTINGS
                self.outgoing[stream][0] = body
                return
            piece, body = body[:room], body[room:]
            self.codec.send_data(stream, piece, end_stream=not body and not trailers)
        del self.outgoing[stream]
        if trailers:
            self.codec.send_headers(stream, trailers, end_stream=True)

    def send(self, stream, head, body, trailers, interim=False):
        empty = not body and not trailers
        self.codec.send_headers(stream, head, end_stream=empty and not interim)
        if not empty and not interim:
            self.outgoing[stream] = [body, trailers]
        self.flush()

    def later(self, stream, body, trailers):
        """The body, after the head was sent as `interim`."""
        if not body and not trailers:
            self.codec.end_stream(stream)
        else:
            self.outgoing[stream] = [body, trailers]
        self.flush()

    def events(self):
        """What came; None at the end."""
        data = self.wire.recv(1 << 16)
        if not data:
            return None
        events = self.codec.receive_data(data)
        for event in events:
            if isinstance(event, h2.events.DataReceived) and event.flow_controlled_length:
                with contextlib.suppress(h2.exceptions.StreamClosedError):
                    self.codec.acknowledge_received_data(event.flow_controlled_length,
                                                         event.stream_id)
        for event in events:  # before bytes go to a stream that has ended
            if isinstance(event, h2.events.StreamReset):
                self.outgoing.pop(event.stream_id, None)
        self.flush()
        return events


class Backend:
    """Answers a request for /…/name with the response `plans[name]`; writes every request into its
    journal, whole or not, and what its codec refused into `faults`."""

    def __init__(self, http2, plans, certificate=None):
        self.http2, self.plans = http2, plans
        self.journal, self.faults = [], []
        self.tls = None
        if certificate:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(*certificate)
            self.tls.set_alpn_protocols(["h2" if http2 else "http/1.1"])
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listening.getsockname()[1]
        self.wires = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                wire, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(wire,), daemon=True).start()

    def _serve(self, wire):
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.wires.add(wire)
        with contextlib.suppress(OSError):
            if self.tls:
                wire = self.tls.wrap_socket(wire, server_side=True)
                self.wires.add(wire)
            (self._serve_http2 if self.http2 else self._serve_http1)(wire)
        wire.close()

    def plan(self, request):
        return self.plans.get(request.path.rsplit("/", 1)[-1], Message(status=200))

    # ---- HTTP/1.1 ----

    def _serve_http1(self, wire):
        codec = h11.Connection(h11.SERVER)
        try:
            while self._answer_http1(wire, codec):
                codec.start_next_cycle()
        except h11.ProtocolError as error:
            self.faults.append(str(error))

    def _answer_http1(self, wire, codec):
        request = None
        while True:
            event = codec.next_event()
            if event is h11.NEED_DATA:
                if codec.they_are_waiting_for_100_continue:
                    wire.sendall(codec.send(h11.InformationalResponse(status_code=100,
                                                                      headers=[])))
                codec.receive_data(wire.recv(1 << 16))
            elif isinstance(event, h11.Request):
                fields = text(event.headers)
                request = Message(method=event.method.decode(), path=event.target.decode("latin-1"),
                                  fields=fields, authority=dict(fields).get("host", ""))
                self.journal.append(request)
            elif isinstance(event, h11.Data):
                request.body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                request.trailers = text(event.headers)
                request.complete = True
                self._reply_http1(wire, codec, self.plan(request), request)
                return codec.our_state is h11.DONE and codec.their_state is h11.DONE
            else:  # closed, or switched to another protocol
                return False

    @staticmethod
    def _reply_http1(wire, codec, plan, request):
        for status, fields in plan.interims:
            wire.sendall(codec.send(h11.InformationalResponse(status_code=status, headers=fields)))
        if plan.until_close:
            wire.sendall(b"HTTP/1.1 200 OK\r\nconnection: close\r\n" + b"".join(
                f"{name}: {value}\r\n".encode() for name, value in plan.fields) + b"\r\n" +
                plan.body)
            with contextlib.suppress(OSError):
                # With TLS the end must be told in TLS: else anybody could have cut it off.
                wire.unwrap() if isinstance(wire, ssl.SSLSocket) else wire.shutdown(socket.SHUT_WR)
                wire.recv(1)
            codec.send_failed()
            return
        wire.sendall(codec.send(h11.Response(status_code=plan.status,
                                             headers=plan.framed_fields(), reason=b"As planned")))
        if request.method != "HEAD":
            for piece in pieces(plan.body):
                wire.sendall(codec.send(h11.Data(data=piece)))
        wire.sendall(codec.send(h11.EndOfMessage(headers=plan.trailers)))

    # ---- HTTP/2 ----

    def _serve_http2(self, wire):
        peer = Http2Peer(wire, client=False)
        requests = {}
        try:
            while (events := peer.events()) is not None:
                for event in events:
                    self._note_http2(peer, requests, event)
        except h2.exceptions.ProtocolError as error:
            self.faults.append(repr(error))

    def _note_http2(self, peer, requests, event):
        if isinstance(event, h2.events.RequestReceived):
            fields = text(event.headers)
            pseudo = dict(fields)
            request = Message(method=pseudo[":method"], path=pseudo.get(":path", ""),
                              authority=pseudo.get(":authority", pseudo.get("host", "")),
                              fields=[pair for pair in fields if not pair[0].startswith(":")])
            requests[event.stream_id] = request
            self.journal.append(request)
        elif isinstance(event, h2.events.DataReceived):
            requests[event.stream_id].body += event.data
        elif isinstance(event, h2.events.TrailersReceived):
            requests[event.stream_id].trailers = text(event.headers)
        elif isinstance(event, h2.events.StreamEnded):
            request = requests.pop(event.stream_id)
            request.complete = True
            plan = self.plan(request)
            for status, fields in plan.interims:
                peer.send(event.stream_id, [(":status", str(status)), *fields], b"", [], True)
            body = b"" if request.method == "HEAD" else plan.body
            peer.send(event.stream_id, [(":status", str(plan.status)), *plan.framed_fields()],
                      body, plan.trailers)

    def end(self):
        self.listening.close()
        for wire in list(self.wires):
            with contextlib.suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)


def connected(port, ca_file=None, protocol=None):
    wire = socket.create_connection(("127.0.0.1", port), timeout=20)
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if ca_file is None:
        return wire
    context = ssl.create_default_context(cafile=ca_file)
    context.set_alpn_protocols([protocol])
    wire = context.wrap_socket(wire, server_hostname="127.0.0.1")
    assert wire.selected_alpn_protocol() == protocol
    return wire


class Http1Client:
    def __init__(self, port, ca_file=None):
        self.wire = connected(port, ca_file, "http/1.1")
        self.codec = h11.Connection(h11.CLIENT)

    def ask(self, request):
        codec, answer = self.codec, Message()
        fields = [("host", request.authority), *request.framed_fields()]
        if not request.length:
            fields.append(("transfer-encoding", "chunked"))
        if request.expect:
            fields.append(("expect", "100-continue"))
        self.wire.sendall(codec.send(h11.Request(method=request.method, target=request.path,
                                                 headers=fields)))
        if request.expect:
            while not answer.interims:
                self._note(codec.next_event(), answer)
        for piece in pieces(request.body):
            self.wire.sendall(codec.send(h11.Data(data=piece)))
        self.wire.sendall(codec.send(h11.EndOfMessage(headers=request.trailers)))
        while not answer.complete:
            self._note(codec.next_event(), answer)
        codec.start_next_cycle()
        return answer

    def _note(self, event, answer):
        if event is h11.NEED_DATA:
            self.codec.receive_data(self.wire.recv(1 << 16))
        elif isinstance(event, h11.InformationalResponse):
            answer.interims.append((event.status_code, text(event.headers)))
        elif isinstance(event, h11.Response):
            answer.status, answer.fields = event.status_code, text(event.headers)
        elif isinstance(event, h11.Data):
            answer.body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            answer.trailers, answer.complete = text(event.headers), True
        else:
            raise AssertionError(f"ended: {event}")

    def end(self):
        self.wire.close()


class Http2Client:
    def __init__(self, port, ca_file=None):
        self.scheme = "https" if ca_file else "http"
        self.peer = Http2Peer(connected(port, ca_file, "h2"), client=True)

    def ask(self, request):
        answer = Message()
        stream = self.peer.codec.get_next_available_stream_id()
        head = [(":method", request.method), (":scheme", self.scheme), (":path", request.path),
                (":authority", request.authority), *request.framed_fields()]
        if request.expect:
            self.peer.send(stream, [*head, ("expect", "100-continue")], b"", [], True)
            while not answer.interims:
                self._note(stream, answer)
            self.peer.later(stream, request.body, request.trailers)
        elif not request.length and not request.body and not request.trailers:
            self.peer.send(stream, head, b"", [], True)
            self.peer.later(stream, b"", [])  # an empty DATA frame is the end
        else:
            self.peer.send(stream, head, request.body, request.trailers)
        while not answer.complete:
            self._note(stream, answer)
        return answer

    def _note(self, stream, answer):
        events = self.peer.events()
        if events is None:
            raise AssertionError("the connection ended")
        for event in events:
            if getattr(event, "stream_id", None) != stream:
                continue
            if isinstance(event, h2.events.InformationalResponseReceived):
                fields = text(event.headers)
                answer.interims.append((int(fields[0][1]), fields[1:]))
            elif isinstance(event, h2.events.ResponseReceived):
                fields = text(event.headers)
                answer.status, answer.fields = int(fields[0][1]), fields[1:]
            elif isinstance(event, h2.events.DataReceived):
                answer.body += event.data
            elif isinstance(event, h2.events.TrailersReceived):
                answer.trailers = text(event.headers)
            elif isinstance(event, h2.events.StreamEnded):
                answer.complete = True
            elif isinstance(event, h2.events.StreamReset):
                raise AssertionError(f"reset: {event.error_code}")

    def end(self):
        self.peer.wire.close()
