// Open-loop load over HTTP/2: `node http2_load.mjs URL SESSIONS RATE`. Requests leave at planned
// times on a few connections; every answer is checked against the id that asked for it. A session
// that gets GOAWAY finishes its requests and is replaced. The end of standard input stops it; then
// it prints one JSON object: {asked, answered, again, sessions, failures}.
import http2 from 'node:http2';

const [url, count, rate] = process.argv.slice(2);
const REFUSED_STREAM = 7;
const REPEATS_MAX = 3;  // a server that refuses on and on would otherwise fail nothing
const summary = { asked: 0, answered: 0, again: 0, sessions: 0, failures: [] };
const sessions = new Array(Number(count)).fill(null);
let open = 0;
let stopping = false;

function sessionAt(i) {
  const old = sessions[i];
  if (old && !old.closed && !old.destroyed) return old;
  const session = http2.connect(url, { rejectUnauthorized: false });  // its certificate changes
  session.on('error', (error) => summary.failures.push(`session: ${error.message}`));
  summary.sessions += 1;
  sessions[i] = session;
  return session;
}

// What was certainly not processed (RFC 9113, 8.7) is sent again, a few times; nothing else is.
function ask(id, repeats = 0) {
  open += 1;
  const stream = sessionAt(id % sessions.length).request({ ':path': `/item?${id}` });
  const chunks = [];
  let status = 0;
  let error = null;
  stream.on('response', (headers) => { status = headers[':status']; });
  stream.on('data', (chunk) => chunks.push(chunk));
  stream.on('error', (found) => { error = found; });
  stream.on('close', () => {
    open -= 1;
    const body = Buffer.concat(chunks).toString();
    if (status === 200 && body === String(id)) {
      summary.answered += 1;
    } else if (status === 0 && stream.rstCode === REFUSED_STREAM && repeats < REPEATS_MAX) {
      summary.again += 1;
      setImmediate(() => ask(id, repeats + 1));
    } else {
      summary.failures.push(`${id}: ${status} ${body} ${error ? error.message : ''}`);
    }
  });
  stream.end();
}

const began = Date.now();
const timer = setInterval(() => {
  if (stopping) {
    if (open > 0) return;
    clearInterval(timer);
    process.stdout.write(JSON.stringify(summary) + '\n');
    process.exit(0);
  }
  const due = Math.floor((Date.now() - began) / 1000 * Number(rate));
  while (summary.asked < due) ask(summary.asked++);
}, 5);
process.stdin.resume();
process.stdin.on('end', () => { stopping = true; });
