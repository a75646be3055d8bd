/** Parameters as zod schemas, as users write them for frameworks. */

import { z } from "zod";

const TYPES = {
  string: () => z.string(),
  integer: () => z.number().int(),
  number: () => z.number(),
  boolean: () => z.boolean(),
  array: () => z.array(z.any()),
  object: () => z.record(z.string(), z.any()),
  null: () => z.null(),
};

/**
 * Return the schema of an object with these fields.
 *
 * @param {import("./agent.mjs").ToolSpec["parameters"]} parameters
 */
export function schemaOf(parameters) {
  return z.object(Object.fromEntries(Object.entries(parameters).map(([name, parameter]) => [name, field(parameter)])));
}

function field({ type, required, default: value }) {
  const plain = (TYPES[type] ?? z.any)();
  if (required) return plain;
  return value === undefined || value === null ? plain.optional() : plain.default(value);
}
