// Node's HTTP/2 client, as programs use it: `node http2_client.mjs URL CA-FILE WHAT`. Prints one
// JSON object per line; ends with 1 and says why if anything is not as the protocol has it.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http2 from 'node:http2';

const [url, caFile, what] = process.argv.slice(2);
const say = (object) => process.stdout.write(JSON.stringify(object) + '\n');
const session = http2.connect(url, { ca: readFileSync(caFile) });
session.on('error', (error) => fail(`session: ${error.message}`));

function fail(why) {
  process.stderr.write(`${why}\n`);
  process.exit(1);
}

function ask(headers, options) {
  const stream = session.request(headers, options);
  stream.on('error', (error) => fail(`${headers[':path']}: ${error.message}`));
  return stream;
}

// {status, headers, body, trailers} of a stream that was asked.
async function answer(stream) {
  const chunks = [];
  let trailers = null;
  stream.on('trailers', (fields) => { trailers = { ...fields }; });
  const [headers] = await once(stream, 'response');
  stream.on('data', (chunk) => chunks.push(chunk));
  await once(stream, 'end');
  if (stream.rstCode !== 0) fail(`reset with ${stream.rstCode}`);
  return { status: headers[':status'], headers: { ...headers }, body: Buffer.concat(chunks),
           trailers };
}

const get = (path) => answer(ask({ ':path': path }));

const parts = {
  // As many at once as the server lets one connection have.
  async many() {
    await once(session, 'remoteSettings');
    const atOnce = session.remoteSettings.maxConcurrentStreams;
    const paths = Array.from({ length: atOnce }, (_, i) => `/picture-${i % 24}.svg`);
    const answers = await Promise.all(paths.map(get));
    say({ atOnce, protocol: session.alpnProtocol, encrypted: session.encrypted,
          statuses: answers.map((a) => a.status), bytes: answers.map((a) => a.body.length) });
  },

  // A body with its length, then one without, written in pieces.
  async post() {
    const body = Buffer.alloc(300 * 1024, 'weir');
    const sha = createHash('sha256').update(body).digest('hex');
    const known = ask({ ':path': '/echo', ':method': 'POST', 'content-length': body.length });
    known.end(body);
    const first = JSON.parse((await answer(known)).body);
    const unknown = ask({ ':path': '/echo', ':method': 'POST' });
    const second = answer(unknown);
    for (let at = 0; at < body.length; at += 10000) {
      if (!unknown.write(body.subarray(at, at + 10000))) await once(unknown, 'drain');
    }
    unknown.end();
    say({ sha, size: body.length, known: first, unknown: JSON.parse((await second).body) });
  },

  // Trailers behind a request, and behind a response.
  async trailers() {
    const up = ask({ ':path': '/echo', ':method': 'POST', te: 'trailers' },
                   { waitForTrailers: true });
    up.on('wantTrailers', () => up.sendTrailers({ 'x-up': 'last word' }));
    up.end('body');
    const seen = JSON.parse((await answer(up)).body);
    const down = await answer(ask({ ':path': '/trailers', te: 'trailers' }));
    say({ up: seen, body: down.body.toString(), down: down.trailers });
  },

  // A megabyte that is not read for a while: no more comes than was asked for, other streams of the
  // connection are not held up, and in the end all of it is there.
  async download() {
    const stream = ask({ ':path': '/large' });
    const [headers] = await once(stream, 'response');  // paused until somebody listens to 'data'
    while (stream.state.localWindowSize > 0) await new Promise((go) => setImmediate(go));
    const beside = [];
    for (let i = 0; i < 10; ++i) beside.push((await get('/style.css')).status);
    const held = stream.readableLength;
    const hash = createHash('sha256');
    let bytes = 0;
    stream.on('data', (chunk) => { hash.update(chunk); bytes += chunk.length; });
    await once(stream, 'end');
    say({ status: headers[':status'], beside, held, bytes, sha: hash.digest('hex') });
  },

  // A request is under way when the server wants to end. Says when it is told; what is under way
  // is answered, nothing new is begun, the session closes by itself.
  async drain() {
    let closed = false;
    session.on('close', () => { closed = true; });
    session.on('goaway', (code, last) => say({ goaway: code, last, closed: session.closed }));
    const held = await answer(ask({ ':path': '/held' }));
    say({ status: held.status, body: held.body.toString(), closedBefore: closed });
    if (!closed) await once(session, 'close');
    say({ closed: true, destroyed: session.destroyed });
  },
};

await parts[what]();
session.close();
