// Clients of HTTP/1.1 and of HTTP/2 with TLS, in all classes, with rates, sizes and pauses from a
// seed. Every answer is compared with the request that it must belong to: its id and all its bytes.
//
//   node chaos_clients.mjs '{"port": …, "tls_port": …, "seed": …, "rate": …}'
//
// The end of standard input stops it; then it prints one JSON object: per kind what became of its
// requests, and `faults`, which must be empty. Some requests are cancelled by the client.
import { randomBytes } from 'node:crypto';
import http from 'node:http';
import http2 from 'node:http2';

const wanted = JSON.parse(process.argv[2]);
const CLASSES = ['critical', 'high', 'normal', 'low'];
const SIZES = [0, 1, 100, 100, 3000, 30000, 200000];
const faults = [];
const kinds = { http1: {}, http2: {} };
let open = 0;
let last = 0;
let stopping = false;

// mulberry32: the same numbers for the same seed
let state = wanted.seed >>> 0;
function random() {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = state;
  t = Math.imul(t ^ (t >>> 15), t | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
const pick = (list) => list[Math.floor(random() * list.length)];

function note(request, what) {
  const key = `${request.of} ${what}`;
  kinds[request.kind][key] = (kinds[request.kind][key] ?? 0) + 1;
  open -= 1;
}

// What came instead of an answer that can be compared.
function judge(request, status, fields, body) {
  if (status === 200) {
    const id = fields['x-id'];
    const same = id === request.id && body.equals(request.expected);
    if (!same) faults.push(`${request.kind} ${request.id}: the answer of ${id}, ${body.length} B`);
    return note(request, same ? 'ok' : 'fault');
  }
  const reason = fields['x-weir-reason'];
  if (!reason || ![408, 429, 502, 503, 504].includes(status)) {
    faults.push(`${request.kind} ${request.id}: ${status} ${reason} ${body.subarray(0, 80)}`);
  }
  return note(request, `${status} ${reason}`);
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
function ask1(request) {
  const { method, path, body } = request;
  let ended = false;
  const end = (what) => { if (!ended) { ended = true; note(request, what); } };
  const asked = http.request({ agent, port: wanted.port, host: '127.0.0.1', method, path,
    headers: method === 'POST' ? { 'content-length': body.length } : {} }, (answer) => {
    const pieces = [];
    answer.on('data', (piece) => pieces.push(piece));
    answer.on('error', () => end('cut'));
    answer.on('end', () => {
      if (ended) return;
      if (!answer.complete) return end('cut');
      ended = true;
      judge(request, answer.statusCode, answer.headers, Buffer.concat(pieces));
    });
  });
  asked.on('error', () => end('cut'));
  asked.end(body);
  return () => asked.destroy();
}

const sessions = [null, null, null, null];
function session() {
  const i = Math.floor(random() * sessions.length);
  const old = sessions[i];
  if (old && !old.closed && !old.destroyed) return old;
  sessions[i] = http2.connect(`https://127.0.0.1:${wanted.tls_port}`,
    { rejectUnauthorized: false, servername: 'localhost' });
  sessions[i].on('error', () => {});
  return sessions[i];
}

function ask2(request) {
  const { method, path, body } = request;
  const stream = session().request({ ':method': method, ':path': path });
  const pieces = [];
  let fields = {};
  let whole = false;
  stream.on('response', (found) => { fields = found; });
  stream.on('data', (piece) => pieces.push(piece));
  stream.on('end', () => { whole = true; });
  stream.on('error', () => {});
  stream.on('close', () => {
    const status = fields[':status'] ?? 0;
    // REFUSED: a request refused before it was processed is not an answer.
    if (!whole || stream.rstCode !== 0 || status === 0) return note(request, 'cut');
    judge(request, status, fields, Buffer.concat(pieces));
  });
  stream.end(body);
  return () => stream.close(http2.constants.NGHTTP2_CANCEL);
}

function ask(kind) {
  const of = pick(CLASSES);
  const id = `${kind}-${last += 1}`;
  const size = pick(SIZES);
  const post = random() < 0.3;
  const body = post ? randomBytes(size) : undefined;
  const request = { kind, of, id, body, method: post ? 'POST' : 'GET',
    path: `/${of}/${kind}?id=${id}&size=${size}`,
    expected: post ? body : Buffer.alloc(size, `${id}.`) };
  open += 1;
  const cancel = (kind === 'http1' ? ask1 : ask2)(request);
  if (random() < 0.03) setTimeout(cancel, random() * 50);
}

// Requests leave at random times, whatever became of earlier ones; now and then a pause.
function plan(kind) {
  if (stopping) return;
  ask(kind);
  const gap = -Math.log(1 - random()) * 1000 / wanted.rate;
  setTimeout(plan, random() < 0.005 ? 500 * random() : gap, kind);
}

function finish() {
  if (open > 0 && Date.now() < stopping + 30000) return setTimeout(finish, 20);
  if (open > 0) faults.push(`${open} requests without an answer`);
  return process.stdout.write(`${JSON.stringify({ kinds, faults })}\n`, () => process.exit(0));
}

plan('http1');
plan('http2');
process.stdin.resume();
process.stdin.on('end', () => { stopping = Date.now(); finish(); });
