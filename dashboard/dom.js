// Builds and changes elements. Everything that comes from the gateway becomes text, never markup:
// this file has the only calls that create nodes, and none of them parses HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && typeof value === "boolean") node[name] = value;
    else node.setAttribute(name, value);
  }
  for (const child of children.flat()) {
    if (child === undefined || child === null) continue;
    node.append(child);  // a string becomes a text node
  }
  return node;
}

export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Sets the text of `node`, which holds nothing else; does nothing if it is the same. */
export function text(node, value) {
  const wanted = value === undefined || value === null ? "" : String(value);
  const first = node.firstChild;
  if (first === null) {
    if (wanted !== "") node.append(wanted);
  } else if (first.data !== wanted) {
    first.data = wanted;
  }
}

/** Sets an attribute; `null` removes it; does nothing if it is the same. */
export function attr(node, name, value) {
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, value);
  }
}

export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

export function clear(node) {
  while (node.firstChild) node.firstChild.remove();
}
