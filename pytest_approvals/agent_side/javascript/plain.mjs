/** What can cross the boundary of a process: plain JSON; for anything else a readable marker. */

const DEPTH = 60;

/**
 * Gives a value as plain JSON.
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
    const told = Object.entries(value).filter(([, part]) => part !== undefined);
    return Object.fromEntries(told.map(([name, part]) => [name, plain(part, depth - 1)]));
  }
  if (typeof value?.toJSON === "function") return plain(value.toJSON(), depth - 1);
  return marker(value);
}

/** @param {any} value */
function marker(value) {
  return `<not JSON: ${typeof value === "object" ? `a ${value.constructor?.name ?? "value"}` : String(value)}>`;
}

/**
 * Gives arguments as an object where their text is one, and else the text.
 *
 * @param {any} said
 * @returns {any}
 */
export function parsed(said) {
  if (typeof said !== "string") return said;
  try {
    const value = JSON.parse(said);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : said;
  } catch {
    return said;
  }
}

/**
 * Gives a value with its keys in order, so that equal values have equal texts.
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
  return Object.fromEntries(parts.sort(([one], [other]) => (one < other ? -1 : 1)));
}

/**
 * Gives what a model reads of a value: text as it is, anything else as JSON.
 *
 * @param {any} value
 * @returns {string}
 */
export function text(value) {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}
