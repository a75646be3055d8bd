/** What a caller of the SDK makes of a status that is no error. */

/** The finish reason `interrupted`: the reply is not whole. */
export class Interrupted extends Error {
  name = "Interrupted";
  message = "the stream ended before the model had finished";
}
