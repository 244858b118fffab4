// A WebSocket peer that nobody here wrote: Debian's package of `ws`.
//   websocket_peer.mjs server                          prints its port
//   websocket_peer.mjs client http1|http2 URL COUNT    prints what it saw, one object
// Each side sends COUNT messages without waiting for the other, checks every one that it gets, and
// tells the SHA-256 over all that it has sent.
import { createHash } from 'node:crypto';
import http from 'node:http';
import http2 from 'node:http2';
import { createRequire } from 'node:module';

const { WebSocket, WebSocketServer } = createRequire(import.meta.url)('/usr/share/nodejs/ws');
const SIZES = [0, 1, 5, 60, 125, 126, 200, 1000];
const LARGE = [65535, 65536, 200000];
const BATCH = 200;
const pattern = Buffer.alloc(1 << 18);
for (let i = 0; i < pattern.length; ++i) pattern[i] = (i * 2654435761) >>> 13;

// The message of one number and one side; no two in a row are alike.
function message(index, side) {
  const choice = index * 7 + side;
  const size = index % 100 === 99 ? LARGE[choice % LARGE.length] : SIZES[choice % SIZES.length];
  const at = (index * 31 + side) % (pattern.length - 200000);
  return pattern.subarray(at, at + size);
}

// Sends all, checks all; `done` gets what this side saw once both have finished.
function converse(socket, count, side, done) {
  const sent = createHash('sha256');
  const got = createHash('sha256');
  let index = 0;
  let received = 0;
  let wrong = 0;
  const sendSome = () => {
    for (let n = 0; n < BATCH && index < count; ++n, ++index) {
      const data = message(index, side);
      sent.update(data);
      socket.send(data, { binary: true }, n === BATCH - 1 ? sendSome : undefined);
    }
    if (index === count) {
      ++index;
      socket.send(sent.digest('hex'));
    }
  };
  socket.on('message', (data, binary) => {
    if (!binary) {
      return done({ received, wrong, checksum: data.toString() === got.digest('hex') });
    }
    got.update(data);
    if (Buffer.compare(data, message(received++, 1 - side)) !== 0) ++wrong;
  });
  sendSome();
}

function serve() {
  const server = http.createServer((_, response) => response.end('no'));
  const sockets = new WebSocketServer({ server, perMessageDeflate: true });
  sockets.on('connection', (socket, request) => {
    const url = new URL(request.url, 'http://x');
    if (url.pathname === '/close') return socket.close(4002, 'by the server');
    socket.on('close', (code, why) => console.log(JSON.stringify({ code, why: `${why}` })));
    converse(socket, Number(url.searchParams.get('count')), 1, (saw) => {
      console.log(JSON.stringify({ ...saw, extensions: socket.extensions }));
    });
  });
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));
}

// A WebSocket on a stream of HTTP/2 (RFC 8441), which `ws` itself does not open.
function overHttp2(url, opened) {
  const session = http2.connect(`http://${url.host}`);
  session.once('remoteSettings', (settings) => {
    if (!settings.enableConnectProtocol) throw new Error('no extended CONNECT');
    const stream = session.request({
      ':method': 'CONNECT', ':protocol': 'websocket', ':path': url.pathname + url.search,
      'sec-websocket-version': '13',
    });
    stream.setNoDelay = () => {};
    stream.once('response', (head) => {
      if (head[':status'] !== 200) throw new Error(`status ${head[':status']}`);
      const socket = new WebSocket(null);
      socket._isServer = false;
      socket.setSocket(stream, Buffer.alloc(0), { maxPayload: 1 << 20, skipUTF8Validation: false });
      socket.on('close', () => session.close());
      opened(socket);
    });
  });
}

function ask(protocol, address, count) {
  const run = (socket) => {
    let saw = {};
    socket.on('close', (code, why) => {
      console.log(JSON.stringify({ ...saw, code, why: `${why}` }));
    });
    if (count > 0) {
      converse(socket, count, 0, (found) => {
        saw = { ...found, extensions: socket.extensions };
        socket.ping('are you there');
        socket.once('pong', (data) => {
          saw.pong = `${data}`;
          socket.close(4001, 'by the client');
        });
      });
    }
  };
  if (protocol === 'http2') return overHttp2(new URL(address), run);
  const socket = new WebSocket(address, { perMessageDeflate: true });
  socket.on('open', () => run(socket));
}

const [mode, protocol, address, count] = process.argv.slice(2);
if (mode === 'server') serve();
else ask(protocol, address, Number(count));
