/** Values as plain JSON; what JSON cannot hold becomes a readable marker. */

// As `MAX_DEPTH` in `rpc/serialization.py`.
const DEPTH = 60;

/**
 * Return a value as plain JSON.
 *
 * @param {any} value
 * @param {number} [depth]
 * @returns {any}
 */
export function plain(value, depth = DEPTH) {
  if (value === null || value === undefined) return null;
  if (typeof value === "boolean" || typeof value === "string") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : marker(value);
  if (depth === 0) return `<not JSON: nested deeper than ${DEPTH}>`;
  if (Array.isArray(value)) return value.map((part) => plain(part, depth - 1));
  if (typeof value === "object" && [Object.prototype, null].includes(Object.getPrototypeOf(value))) {
    const present = Object.entries(value).filter(([, part]) => part !== undefined);
    return Object.fromEntries(present.map(([name, part]) => [name, plain(part, depth - 1)]));
  }
  if (typeof value?.toJSON === "function") return plain(value.toJSON(), depth - 1);
  return marker(value);
}

/** @param {any} value */
function marker(value) {
  return `<not JSON: ${typeof value === "object" ? `a ${value.constructor?.name ?? "value"}` : String(value)}>`;
}

/**
 * Return arguments as an object if their text is one, else the text.
 *
 * @param {any} value
 * @returns {any}
 */
export function parsed(value) {
  if (typeof value !== "string") return value;
  try {
    const read = JSON.parse(value);
    return read !== null && typeof read === "object" && !Array.isArray(read) ? read : value;
  } catch {
    return value;
  }
}

/**
 * Return a value with its keys in order, so that equal values have equal texts.
 *
 * @param {any} value
 * @param {string[]} [verbatim] keys whose values stay as they are
 * @returns {any}
 */
export function ordered(value, verbatim = []) {
  if (Array.isArray(value)) return value.map((part) => ordered(part, verbatim));
  if (value === null || typeof value !== "object") return value;
  const parts = Object.entries(value).map(([key, part]) => [
    key,
    verbatim.includes(key) ? part : ordered(part, verbatim),
  ]);
  return Object.fromEntries(parts.sort(([key], [other]) => (key < other ? -1 : 1)));
}

/**
 * Return what a model reads of a value: text as it is, anything else as JSON.
 *
 * @param {any} value
 * @returns {string}
 */
export function text(value) {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}
