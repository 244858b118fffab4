#!/usr/bin/python3
"""Records what real HTTP/2 clients send, for fuzz/corpus/h2_session_fuzz/.

usage: record_h2.py FOLDER [HELLO_SERVER]

Each client talks to a small server made of python3-h2, which answers everything; the client's bytes
become one file. Needs Debian's python3-h2, curl, nghttp, h2load, Node and Chromium (so it runs
under Debian's python). With the example server: also the cases of tests/attack/h2_rules.py.
"""

import importlib
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

import h2.config
import h2.connection
import h2.events
import h2.settings


def serve(listener, recorded):
    """One connection: answers each complete request, keeps the bytes that came."""
    peer, _ = listener.accept()
    peer.settimeout(5)
    conn = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    conn.initiate_connection()
    peer.sendall(conn.data_to_send())
    try:
        while data := peer.recv(65536):
            recorded.extend(data)
            for event in conn.receive_data(data):
                if isinstance(event, h2.events.DataReceived):
                    conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    conn.send_headers(event.stream_id, [(":status", "200")])
                    conn.send_data(event.stream_id, b"ok", end_stream=True)
            peer.sendall(conn.data_to_send())
    except (OSError, h2.exceptions.ProtocolError):
        pass
    peer.close()


def record(name, folder, client):
    listener = socket.create_server(("127.0.0.1", 0))
    recorded = bytearray()
    thread = threading.Thread(target=serve, args=(listener, recorded))
    thread.start()
    client(listener.getsockname()[1])
    thread.join(10)
    listener.close()
    (folder / name).write_bytes(recorded)
    print(f"{name}: {len(recorded)} bytes")


def program(*arguments):
    def run(port):
        subprocess.run([a.replace("PORT", str(port)) for a in arguments], timeout=10, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return run


def python_client(script):
    """A python3-h2 client that runs `script(conn)` between reads."""
    def run(port):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.settimeout(0.2)
        conn = h2.connection.H2Connection()
        conn.initiate_connection()
        for _ in script(conn):
            sock.sendall(conn.data_to_send())
            try:
                conn.receive_data(sock.recv(65536))
            except socket.timeout:
                pass
        conn.close_connection()
        sock.sendall(conn.data_to_send())
        sock.close()
    return run


GET = [(":method", "GET"), (":scheme", "http"), (":authority", "localhost"), (":path", "/")]
POST = [(":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", "/up")]


def upload_with_trailers(conn):
    conn.send_headers(1, POST + [("te", "trailers"), ("content-type", "application/grpc")])
    yield
    for _ in range(5):
        conn.send_data(1, b"x" * 1000, pad_length=7)
        yield
    conn.send_headers(1, [("grpc-status", "0")], end_stream=True)
    yield


def cancels(conn):
    for stream in range(1, 20, 2):
        conn.send_headers(stream, GET + [("cookie", f"a={stream}"), ("cookie", "b=2")],
                          end_stream=True)
    yield
    for stream in range(1, 20, 2):
        try:
            conn.reset_stream(stream, 8)
        except h2.exceptions.StreamClosedError:
            pass
    conn.ping(b"12345678")
    yield


def settings_and_windows(conn):
    conn.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 10,
                          h2.settings.SettingCodes.HEADER_TABLE_SIZE: 0})
    conn.send_headers(1, GET, end_stream=True, priority_weight=20, priority_depends_on=0)
    yield
    conn.increment_flow_control_window(100)
    conn.increment_flow_control_window(100, stream_id=1)
    conn.prioritize(3, weight=9, depends_on=1)
    yield


def large_headers(conn):
    conn.send_headers(1, GET + [(f"x-{i}", "v" * 200) for i in range(100)], end_stream=True)
    yield
    conn.send_headers(3, GET + [("x-huge", "v" * 20000)], end_stream=True)
    yield


NODE = """
const c = require('http2').connect('URL');
const post = c.request({':method': 'POST', ':path': '/up', 'content-type': 'text/plain'});
post.on('response', () => {}); post.resume(); post.write('one'); post.end('two');
const get = c.request({':path': '/x', 'cookie': 'a=b; c=d'});
get.resume(); get.on('end', () => c.close());
"""


def chromium(port):
    """It speaks HTTP/2 only by TLS: so TLS ends in front of the server that records."""
    with tempfile.TemporaryDirectory() as folder:
        key, cert = f"{folder}/key.pem", f"{folder}/cert.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-keyout", key, "-out", cert], check=True,
                       capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        context.set_alpn_protocols(["h2"])
        front = socket.create_server(("127.0.0.1", 0))
        front.settimeout(10)
        browser = subprocess.Popen(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}",
             "--ignore-certificate-errors", "--dump-dom",
             f"https://127.0.0.1:{front.getsockname()[1]}/"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            outer = accept_tls(front, context)
            inner = socket.create_connection(("127.0.0.1", port))
            pump = threading.Thread(target=copy, args=(inner, outer), daemon=True)
            pump.start()
            copy(outer, inner)
        finally:
            browser.kill()
            browser.wait()
            front.close()


def accept_tls(listener, context):
    while True:  # it tries the handshake more than once before it trusts the certificate
        peer, _ = listener.accept()
        peer.settimeout(3)
        try:
            return context.wrap_socket(peer, server_side=True)
        except (ssl.SSLError, OSError):
            peer.close()


def copy(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def record_rules(folder, hello_server):
    """The cases of conformance, legal and not, as their judge sends them."""
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "attack"))
    attack, judge, rules, generic = (importlib.import_module(name) for name in (
        "attack", "h2_judge", "h2_rules", "h2_rules_generic"))
    attack.HELLO_SERVER = hello_server

    class Recorder(judge.Peer):
        def __init__(self, server):
            self.sent = bytearray()
            super().__init__(server)

        def send(self, data):
            self.sent += data
            return super().send(data)

    server = attack.Server()
    for rule in rules.RULES + generic.RULES:
        with Recorder(server) as peer:
            if rule.greets:
                peer.greet()
            frames = rule.sends(peer)
            if rule.then:
                peer.write(*frames)
                rule.then(peer)
            name = "rule_" + rule.name.replace("/", "_").replace(".", "_")
            (folder / name).write_bytes(peer.sent)
    server.stop()


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.strip())
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    url = "http://127.0.0.1:PORT/"
    record("curl_get", folder, program("curl", "--http2-prior-knowledge", "-s", url))
    record("curl_post", folder, program("curl", "--http2-prior-knowledge", "-s", "-d", "a=1&b=2",
                                        url + "form"))
    record("nghttp_get", folder, program("nghttp", url, url + "x?y=z"))
    record("nghttp_no_dep", folder, program("nghttp", "--no-dep", "-H", "x-a: b", url))
    record("nghttp_padded", folder, program("nghttp", "-b", "16", url))
    record("h2load", folder, program("h2load", "-n20", "-c1", "-m5", url))
    record("node", folder, program("node", "-e", NODE.replace("URL", url)))
    record("chromium", folder, chromium)
    record("python_upload", folder, python_client(upload_with_trailers))
    record("python_cancels", folder, python_client(cancels))
    record("python_windows", folder, python_client(settings_and_windows))
    record("python_large", folder, python_client(large_headers))
    if len(sys.argv) == 3:
        record_rules(folder, sys.argv[2])


main()
