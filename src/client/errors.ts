/** The stream ended without an end of the answer, and could not be resumed. What was read of it is not the whole answer. */
export class StreamInterruptedError extends Error {
  override readonly name = 'StreamInterruptedError';

  constructor() {
    super('The stream ended before the answer did, and could not be resumed.');
  }
}

/** A replica has sent nothing for `idle_ms`, not even a keep-alive. */
export class SilenceError extends Error {
  override readonly name = 'SilenceError';

  constructor(silent_ms: number) {
    super(`The connection was given up: nothing came for ${Math.round(silent_ms)} ms (idle_ms).`);
  }
}

/** An event of the stream is larger than this client is willing to hold. */
export class EventTooLargeError extends Error {
  override readonly name = 'EventTooLargeError';

  constructor(limit_characters: number) {
    super(`An event of the stream is longer than ${limit_characters} characters.`);
  }
}
