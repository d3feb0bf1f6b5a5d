/** The stream ended before the answer did, and the client couldn't resume it. What you've read isn't the complete answer. */
export class StreamInterruptedError extends Error {
  override readonly name = 'StreamInterruptedError';

  constructor() {
    super('The stream ended before the answer did, and could not be resumed.');
  }
}

/** A replica sent nothing for `idleMs`, not even a keep-alive. */
export class SilenceError extends Error {
  override readonly name = 'SilenceError';

  constructor(silent_ms: number) {
    super(`The connection was given up: nothing came for ${Math.round(silent_ms)} ms (idleMs).`);
  }
}

/** An event of the stream is larger than this client accepts. */
export class EventTooLargeError extends Error {
  override readonly name = 'EventTooLargeError';

  constructor(limit_characters: number) {
    super(`An event of the stream is longer than ${limit_characters} characters.`);
  }
}

/** Holdfast refused a request about a task or one of its tool calls, or couldn't be reached. Don't run the tool then. */
export class LedgerError extends Error {
  override readonly name = 'LedgerError';
  /** The code of Holdfast's error; undefined if no replica answered. */
  readonly code: string | undefined;

  constructor(message: string, { code, cause }: { readonly code?: string; readonly cause?: unknown } = {}) {
    super(message, { cause });
    this.code = code;
  }
}

/** An answer couldn't be stopped: Holdfast refused, couldn't be reached, or isn't the answer's source. */
export class StopError extends Error {
  override readonly name = 'StopError';
  /** The code of Holdfast's error, for example `url_expired`; undefined if Holdfast didn't answer. */
  readonly code: string | undefined;

  constructor(
    message: string,
    { code, cause }: { readonly code?: string | undefined; readonly cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.code = code;
  }
}

/**
 * It's unknown whether a tool ran: its process was lost, or it threw. Holdfast doesn't let it run again before you've found
 * out, since it may have had its effect.
 */
export class UnknownCallError extends Error {
  override readonly name = 'UnknownCallError';
  readonly #release: () => Promise<void>;

  constructor(tool: string, release: () => Promise<void>) {
    super(
      `It is unknown whether '${tool}' was run. Look for its effect; if there is none, call release() of this error and run the tool again.`,
    );
    this.#release = release;
  }

  /** Call this if the tool hasn't run: the next process may run it then. Rejects with a {@link LedgerError}. */
  release(): Promise<void> {
    return this.#release();
  }
}

/** A tool ran, but its result was too long to keep. */
export class ResultNotKeptError extends Error {
  override readonly name = 'ResultNotKeptError';

  constructor(tool: string) {
    super(
      `'${tool}' was run by an earlier process, whose result was too long to be kept. Keep such results where the tool finds them again, and return where that is.`,
    );
  }
}
