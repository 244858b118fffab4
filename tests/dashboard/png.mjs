// Reads the pictures that the browser makes, and writes them small: 256 colours, best compression.
import { deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
const COLOURS_MAX = 256;

/** {width, height, pixels}: each pixel is a number 0xRRGGBB. Eight bits per channel, no interlace. */
export function read_png(file) {
  const data = [];
  let width = 0;
  let height = 0;
  let channels = 3;
  for (let at = SIGNATURE.length; at < file.length;) {
    const length = file.readUInt32BE(at);
    const kind = file.toString("latin1", at + 4, at + 8);
    const body = file.subarray(at + 8, at + 8 + length);
    if (kind === "IHDR") {
      [width, height, channels] = [body.readUInt32BE(0), body.readUInt32BE(4), { 2: 3, 6: 4 }[body[9]]];
      if (body[8] !== 8 || channels === undefined || body[12] !== 0) throw new Error("not a picture as the browser makes them");
    }
    if (kind === "IDAT") data.push(body);
    at += 12 + length;
  }
  const bytes = unfiltered(inflateSync(Buffer.concat(data)), width * channels, height, channels);
  const pixels = new Uint32Array(width * height);
  for (let i = 0, at = 0; i < pixels.length; ++i, at += channels) pixels[i] = (bytes[at] << 16) | (bytes[at + 1] << 8) | bytes[at + 2];
  return { width, height, pixels };
}

function unfiltered(raw, stride, height, step) {
  const out = Buffer.alloc(stride * height);
  for (let y = 0; y < height; ++y) {
    const filter = raw[y * (stride + 1)];
    const here = y * stride;
    for (let i = 0; i < stride; ++i) {
      const left = i >= step ? out[here + i - step] : 0;
      const up = y > 0 ? out[here + i - stride] : 0;
      const corner = y > 0 && i >= step ? out[here + i - stride - step] : 0;
      const before = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
      out[here + i] = raw[y * (stride + 1) + 1 + i] + before;
    }
  }
  return out;
}

function paeth(left, up, corner) {
  const [a, b, c] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
  if (a <= b && a <= c) return left;
  return b <= c ? up : corner;
}

/** How often each colour occurs, the most common first: [[0xRRGGBB, pixels]]. */
export function colours({ pixels }) {
  const found = new Map();
  for (const colour of pixels) found.set(colour, (found.get(colour) ?? 0) + 1);
  return [...found].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
}

/** The same picture with its most common colours; others become the nearest of them. */
export function small_png(file) {
  const picture = read_png(file);
  const all = colours(picture).map(([colour]) => colour);
  const palette = all.slice(0, COLOURS_MAX);
  const index = new Map(all.map((colour, i) => [colour, i < COLOURS_MAX ? i : nearest(palette, colour)]));
  const { width, height, pixels } = picture;
  const rows = Buffer.alloc((width + 1) * height);  // each begins with its filter: none
  for (let i = 0; i < pixels.length; ++i) rows[i + Math.floor(i / width) + 1] = index.get(pixels[i]);
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3], 8);
  const table = Buffer.from(palette.flatMap((c) => [c >> 16, (c >> 8) & 255, c & 255]));
  return Buffer.concat([SIGNATURE, chunk("IHDR", head), chunk("PLTE", table), chunk("IDAT", deflateSync(rows, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}

function nearest(palette, colour) {
  let best = 0;
  let least = Infinity;
  palette.forEach((c, i) => {
    const [r, g, b] = [(c >> 16) - (colour >> 16), ((c >> 8) & 255) - ((colour >> 8) & 255), (c & 255) - (colour & 255)];
    const far = r * r + g * g + b * b;
    if (far < least) [best, least] = [i, far];
  });
  return best;
}

function chunk(kind, body) {
  const out = Buffer.alloc(12 + body.length);
  out.writeUInt32BE(body.length, 0);
  out.write(kind, 4, "latin1");
  body.copy(out, 8);
  out.writeUInt32BE(crc(out.subarray(4, 8 + body.length)), 8 + body.length);
  return out;
}

function crc(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; ++bit) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
  }
  return (value ^ 0xffffffff) >>> 0;
}
