/** Errors for statuses that the SDK does not raise itself. */

/** The finish reason `interrupted`: the reply is incomplete. */
export class Interrupted extends Error {
  name = "Interrupted";
  message = "the stream ended before the model had finished";
}
