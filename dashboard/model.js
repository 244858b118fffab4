// What the stream has said so far: the history of the upstream that is shown, the last minute of
// all of them, and the events. Everything has a fixed length. Pure.
import { History } from "./history.js";

const SPARK = 60;
const EVENTS = 256;

export class Model {
  constructor() {
    this.hello = null;
    this.history = new History();
    this.spark = new Map();
    this.events = [];
  }

  on_hello(hello) {
    this.hello = hello;
    this.history.reset(hello.history);
    this.spark.clear();
    for (const [name, { offered = [], refused = [] }] of Object.entries(hello.spark ?? {})) {
      this.spark.set(name, { offered: [...offered], refused: [...refused] });
    }
    this.events = [...(hello.events ?? [])];
  }

  on_tick(tick) {
    this.history.push(tick.now, tick.row);
    const sent = tick.now <= this.hello.now;  // the last minute in `hello` ends with its own second
    for (const { name, offered, refused } of sent ? [] : tick.upstreams ?? []) {
      if (!this.spark.has(name)) this.spark.set(name, { offered: [], refused: [] });
      const spark = this.spark.get(name);
      append(spark.offered, offered);
      append(spark.refused, refused);
    }
    for (const event of tick.events ?? []) this.events.push(event);
    while (this.events.length > EVENTS) this.events.shift();
  }
}

function append(values, value) {
  values.push(value);
  while (values.length > SPARK) values.shift();
}
