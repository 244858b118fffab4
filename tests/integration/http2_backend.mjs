// A backend that speaks HTTP/2 in cleartext (prior knowledge); prints "port N".
import { createServer } from "node:http2";

const server = createServer();
server.on("session", session => session.on("error", () => {}));
server.on("stream", (stream, headers) => {
  const path = headers[":path"];
  let size = 0;
  stream.on("error", () => {});
  stream.on("data", chunk => { size += chunk.length; });
  stream.on("end", () => {
    if (path === "/empty") return stream.respond({ ":status": 204 }, { endStream: true });
    if (path === "/trailers") {
      stream.respond({ ":status": 200 }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "x-end": "yes" }));
      return stream.end("hello");
    }
    const body = path === "/size" ? String(size) : "hello";
    stream.respond({ ":status": 200, "content-length": body.length });
    return stream.end(headers[":method"] === "HEAD" ? undefined : body);
  });
});
server.listen(0, "127.0.0.1", () => console.log(`port ${server.address().port}`));
