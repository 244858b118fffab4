// A replica for chaos: one port, HTTP/1.1 with WebSocket, or HTTP/2 in cleartext with gRPC.
//
//   node chaos_replica.mjs PORT http1|http2       prints "port N"
//
//   GET  …?id=ID&size=N   N bytes, "ID." again and again
//   POST …?id=ID          the body that came
//   gRPC, any method      every message as it came, then grpc-status 0
//   WebSocket             for each message its SHA-256
//
// Answers name the request in x-id. A line on standard input changes how the next requests are
// answered: "good", "slow MILLISECONDS", "reset" (half of them, before or within the answer).
import { createHash } from 'node:crypto';
import http from 'node:http';
import http2 from 'node:http2';
import readline from 'node:readline';

const [port, protocol] = process.argv.slice(2);
let manner = ['good'];
let count = 0;

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  manner = line.split(' ');
});

function cut(answer) {
  const stream = answer.stream ?? answer.socket;
  if (answer.stream) stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
  else stream?.resetAndDestroy();  // null: the other side was faster
}

function reply(answer, id, body) {
  if (answer.destroyed || answer.stream?.destroyed) return;
  count += 1;
  const resets = manner[0] === 'reset' && count % 2 === 0;
  if (resets && count % 4 === 0) return cut(answer);
  answer.writeHead(200, { 'x-id': id, 'content-length': body.length });
  if (!resets) return answer.end(body);
  answer.write(body.subarray(0, body.length >> 1));
  setTimeout(cut, 5, answer);
}

function serve(request, answer) {
  const query = new URL(request.url, 'http://t').searchParams;
  const id = query.get('id') ?? '';
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('error', () => {});
  answer.on('error', () => {});
  request.on('end', () => {
    const body = request.method === 'POST' ? Buffer.concat(pieces)
      : Buffer.alloc(Number(query.get('size') ?? 0), `${id}.`);
    const delay = manner[0] === 'slow' ? Number(manner[1]) : 1;
    setTimeout(reply, delay, answer, id, body);
  });
}

function call(stream) {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.on('data', (piece) => {
    if (manner[0] === 'reset' && ++count % 8 === 0) {
      stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
    } else if (!stream.write(piece)) {
      stream.pause();
    }
  });
  stream.on('drain', () => stream.resume());
  stream.on('end', () => stream.end());
}

// Whole masked frames of `data`: [[opcode, payload]…], and what is left.
function frames(data) {
  const found = [];
  for (;;) {
    if (data.length < 2) break;
    let size = data[1] & 0x7f;
    let at = 2;
    if (size === 126) { if (data.length < 4) break; size = data.readUInt16BE(2); at = 4; }
    else if (size === 127) {
      if (data.length < 10) break;
      size = Number(data.readBigUInt64BE(2));
      at = 10;
    }
    if (data.length < at + 4 + size) break;
    const mask = data.subarray(at, at + 4);
    const payload = Buffer.from(data.subarray(at + 4, at + 4 + size));
    for (let i = 0; i < size; i += 1) payload[i] ^= mask[i & 3];
    found.push([data[0] & 15, payload]);
    data = data.subarray(at + 4 + size);
  }
  return [found, data];
}

function talk(request, socket, rest) {
  const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}` +
    '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
    `Sec-WebSocket-Accept: ${accept}\r\n\r\n`);
  socket.on('error', () => {});
  let left = rest;
  socket.on('data', (data) => {
    let found;
    [found, left] = frames(Buffer.concat([left, data]));
    for (const [opcode, payload] of found) {
      if (opcode === 8) return socket.end(Buffer.concat([Buffer.from([0x88, 2]),
        payload.subarray(0, 2)]));
      socket.write(Buffer.concat([Buffer.from([0x82, 32]),
        createHash('sha256').update(payload).digest()]));
    }
  });
}

const server = protocol === 'http1' ? http.createServer(serve) : http2.createServer();
if (protocol === 'http1') {
  server.on('upgrade', talk);
} else {
  server.on('session', (session) => session.on('error', () => {}));
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    if (`${headers['content-type']}`.startsWith('application/grpc')) return call(stream);
    serve(new http2.Http2ServerRequest(stream, headers, {}, []),
      new http2.Http2ServerResponse(stream));
  });
}
server.listen(Number(port), '127.0.0.1', () => console.log(`port ${server.address().port}`));
