// A demo gateway and clients that ask it for more than its replicas can do.
import { spawn } from "node:child_process";
import { Agent, get } from "node:http";

/** The first group of `pattern`, once `child` has said it. */
export function lines_of(child, pattern) {
  return new Promise((done, failed) => {
    let said = "";
    const read = (part) => {
      said += part;
      const found = pattern.exec(said);
      if (found) done(found[1]);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("exit", (code) => failed(new Error(`weir ended with ${code}: ${said}`)));
  });
}

/** `clients` that ask again as soon as they are answered or refused. Returns what stops them. */
export function ask_all_the_time(url, clients) {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  let running = true;
  const ask = () => {
    if (!running) return;
    const again = () => setTimeout(ask, 5);
    get(url, { agent }, (answer) => answer.resume().on("end", again)).on("error", again);
  };
  for (let i = 0; i < clients; ++i) ask();
  return () => {
    running = false;
    agent.destroy();
  };
}

/** `weir demo` on free ports: {process, gateway, admin, end}. */
export async function start_demo(weir) {
  const child = spawn(weir, ["demo", "--port", "0", "--tls-port", "0", "--admin-port", "0"], { stdio: ["ignore", "pipe", "pipe"] });
  const [gateway, admin] = await Promise.all([lines_of(child, /gateway +(http:\S+)/), lines_of(child, /admin +(http:\S+)/)]);
  const end = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await new Promise((done) => child.once("close", done));
  };
  return { process: child, gateway, admin, end };
}
