// A replica that speaks HTTP/2 in cleartext (prior knowledge): the body of an answer is the query of
// its request, whose id goes to the journal when all of it has arrived. SIGTERM ends it gracefully:
// GOAWAY on every connection, streams under way are answered.
//
//   node http2_replica.mjs PORT JOURNAL DELAY_MS       prints "port N"
import { appendFileSync } from "node:fs";
import { createServer } from "node:http2";

const [port, journal, delay] = process.argv.slice(2);
const sessions = new Set();
const server = createServer();
server.on("session", session => {
  sessions.add(session);
  session.on("close", () => sessions.delete(session));
  session.on("error", () => {});
});
server.on("stream", (stream, headers) => {
  const item = headers[":path"].split("?")[1] ?? "";
  stream.on("error", () => {});
  stream.resume();
  stream.on("end", () => {
    appendFileSync(journal, `${headers[":method"]} ${item}\n`);
    setTimeout(() => {
      if (stream.destroyed) return;
      stream.respond({ ":status": 200, "content-length": item.length });
      stream.end(item);
    }, Number(delay));
  });
});
server.listen(Number(port), "127.0.0.1", () => console.log(`port ${server.address().port}`));
process.on("SIGTERM", () => {
  server.close();
  for (const session of sessions) session.close();
});
