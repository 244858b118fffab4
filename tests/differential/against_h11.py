#!/usr/bin/python3
"""Whatever Weir's HTTP/1 parser accepts must mean the same to h11, which was written from the same
RFCs by others: same requests, same fields, same bodies, same trailers.

Streams: the smuggling vectors, and mutations of them (seeded, so a failure replays). Weir may
refuse what h11 takes. What h11 refuses and Weir takes is a failure unless is_known_refusal() says
why.
"""

import argparse
import random
import struct
import subprocess
import sys

import h11

MUTATIONS = 40000
ROUND = 4000
NASTY = [b"\r", b"\n", b"\r\n", b"\0", b" ", b"\t", b":", b",", b";", b"0", b"5", b"A", b"\x0b",
         b"\x7f", b"\x80", b"_", b"-", b"+", b"chunked", b"Content-Length: 5\r\n",
         b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n", b"Host: a\r\n",
         b"0\r\n\r\n", b"5\r\nhello\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.0"]

# Sound streams, so that many of their mutations are sound too.
SOUND = [
    b"GET /a?b=c HTTP/1.1\r\nHost: example.org:8080\r\nAccept: */*\r\nCookie: a=b; c=d\r\n\r\n",
    b"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nhello worldGET / HTTP/1.1\r\nHost: a"
    b"\r\n\r\n",
    b"POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
    b"5\r\nhello\r\nA;ext=\"1\"\r\n0123456789\r\n0\r\nX-Sum: 7\r\nX-Two: \r\n\r\n"
    b"DELETE /q HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    b"PUT http://a/x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    b"HEAD / HTTP/1.0\r\nX-Odd:\t  spaced \xe2\x82\xac value \t\r\n\r\n",
    b"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\nTE: trailers\r\n\r\n"
    b"GET //x//?? HTTP/1.1\r\nHost: a\r\n\r\n",
]


def unescape(text):
    out = bytearray()
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\\":
            out += char.encode("latin-1")
            continue
        kind = text[at]
        at += 1
        if kind in "rnt0\\":
            out += {"r": b"\r", "n": b"\n", "t": b"\t", "0": b"\0", "\\": b"\\"}[kind]
        elif kind == "x":
            out.append(int(text[at:at + 2], 16))
            at += 2
        elif kind == "{":
            close = text.index("}", at)
            star = text.rindex("*", at, close)
            out += unescape(text[at:star]) * int(text[star + 1:close])
            at = close + 1
        else:
            raise ValueError(f"unknown escape \\{kind}")
    return bytes(out)


def load_vectors(path):
    streams = []
    with open(path, encoding="ascii") as file:
        for line in file:
            if line.startswith("name: "):
                streams.append(b"")
            elif line.startswith("send: "):
                streams[-1] += unescape(line.rstrip("\n")[6:])
    return streams


def mutate(rng, streams):
    stream = bytearray(rng.choice(streams))
    if len(stream) > 2000:
        stream = stream[:200]
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randint(0, len(stream))
        choice = rng.random()
        if choice < 0.5:
            stream[at:at] = rng.choice(NASTY)
        elif choice < 0.7:
            del stream[at:at + rng.randint(1, 4)]
        elif choice < 0.85:
            stream[at:at + 1] = bytes([rng.randint(0, 255)])
        else:
            other = rng.choice(streams)
            cut = rng.randint(0, len(other))
            stream[at:] = other[cut:cut + 2000]
    return bytes(stream)


def from_hex(text):
    return bytes.fromhex(text[1:])


def take_fields(parts):
    count = int(parts.pop(0))
    return [(from_hex(parts.pop(0)), from_hex(parts.pop(0))) for _ in range(count)]


def understood_by_weir(dump, streams):
    """For each stream: the list of requests, in order."""
    data = b"".join(struct.pack("<I", len(s)) + s for s in streams)
    lines = subprocess.run([dump], input=data, capture_output=True, check=True,
                           timeout=60).stdout.decode("ascii").splitlines()
    assert len(lines) == len(streams)
    for line in lines:
        requests = []
        for item in line.split(";"):
            parts = item.split("\t")
            kind = parts.pop(0)
            if kind not in ("request", "tunnel"):
                continue
            method, path, authority, version, keep, body = parts[:6]
            parts = parts[6:]
            requests.append({
                "kind": kind, "method": from_hex(method), "path": from_hex(path),
                "authority": from_hex(authority), "version": version.encode(),
                "keep": keep == "keep", "body": from_hex(body), "fields": take_fields(parts),
                "trailers": take_fields(parts)})
        yield requests


def understood_by_h11(stream, wanted):
    """The first `wanted` requests of the stream, each answered, as h11 reads them. Raises
    h11.RemoteProtocolError."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    connection.receive_data(stream)
    requests = []
    while len(requests) < wanted:
        request = connection.next_event()
        if not isinstance(request, h11.Request):
            return requests
        body = b""
        event = connection.next_event()
        while isinstance(event, h11.Data):
            body += bytes(event.data)
            event = connection.next_event()
        if not isinstance(event, h11.EndOfMessage):
            return requests
        requests.append({
            "method": bytes(request.method), "target": bytes(request.target),
            "version": bytes(request.http_version),
            "fields": [(bytes(n), bytes(v)) for n, v in request.headers], "body": body,
            "trailers": [(bytes(n), bytes(v)) for n, v in event.headers]})
        if len(requests) == wanted:
            return requests
        connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
        connection.send(h11.EndOfMessage())
        if connection.our_state is h11.MUST_CLOSE:
            return requests
        connection.start_next_cycle()
    return requests


def is_same_target(target, ours):
    if ours["method"] == b"CONNECT":
        return target == ours["authority"]
    if target == ours["path"]:
        return True
    _, separator, rest = target.partition(b"://")
    without_path = b"*" if ours["method"] == b"OPTIONS" else b"/"
    return bool(separator) and (rest == ours["authority"] + ours["path"] or
                                rest == ours["authority"] and ours["path"] == without_path)


def is_known_refusal(error):
    """h11 does not skip the one empty line that RFC 9112, 2.2, lets stand before a request."""
    return "no request line received" in str(error)


def difference(ours, theirs):
    if ours["method"] != theirs["method"]:
        return "method"
    if not is_same_target(theirs["target"], ours):
        return "target"
    for key in ("version", "body", "trailers"):
        if ours[key] != theirs[key]:
            return key
    # Names are in lower case on both sides; h11 lowers this value too.
    fields = [(n, v.lower() if n == b"transfer-encoding" else v) for n, v in ours["fields"]]
    return None if fields == theirs["fields"] else "fields"


def judge(stream, requests):
    """A sentence about what is wrong, or None."""
    # A server closes after a request that says so, and a tunnel is not HTTP any more.
    comparable = []
    for request in requests:
        comparable.append(request)
        if not request["keep"] or request["kind"] == "tunnel":
            break
    if not comparable:
        return None
    try:
        theirs = understood_by_h11(stream, len(comparable))
    except h11.RemoteProtocolError as error:
        return None if is_known_refusal(error) else f"h11 refuses: {error}"
    for index, ours in enumerate(comparable):
        if index == len(theirs):
            if comparable[index - 1]["version"] == b"1.0":
                return None  # h11 always closes after HTTP/1.0
            return f"h11 sees only {index} requests"
        if (what := difference(ours, theirs[index])) is not None:
            return f"request {index}: {what} differs: {ours} / {theirs[index]}"
    return None


def judge_the_judge(dump):
    """It must notice each kind of difference, or its silence says nothing."""
    stream = SOUND[2]
    requests = next(understood_by_weir(dump, [stream]))
    assert len(requests) == 2 and judge(stream, requests) is None
    for key, wrong in (("body", b"hello"), ("method", b"PUT"), ("path", b"/other"),
                       ("version", b"1.0"), ("trailers", []), ("fields", [(b"host", b"a")])):
        assert judge(stream, [{**requests[0], key: wrong}]) is not None, key
    single = next(understood_by_weir(dump, [SOUND[0]]))
    assert judge(SOUND[0], single * 2) is not None, "a request too many"
    assert judge(b"GET / HTTP/1.1\r\n\r\n", requests) is not None, "what h11 refuses"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dump", required=True)
    parser.add_argument("--vectors", required=True)
    parser.add_argument("--mutations", type=int, default=MUTATIONS)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    vectors = load_vectors(arguments.vectors)
    small = [v for v in vectors if len(v) <= 2000]
    judge_the_judge(arguments.dump)
    compared = failed = total = 0
    todo = vectors + SOUND
    made = 0
    while todo:
        for stream, requests in zip(todo, understood_by_weir(arguments.dump, todo)):
            total += 1
            compared += bool(requests)
            if (wrong := judge(stream, requests)) is not None:
                failed += 1
                print(f"{stream!r}\n  {wrong}")
        count = min(ROUND, arguments.mutations - made)
        made += count
        todo = [mutate(rng, rng.choice((small, SOUND, SOUND))) for _ in range(count)]
    print(f"{total} streams, {compared} with requests that Weir accepted, {failed} differences")
    # A judge that was never asked proves nothing.
    return 1 if failed or compared < total // 8 else 0


if __name__ == "__main__":
    sys.exit(main())
