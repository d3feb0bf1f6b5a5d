/** The stream ended without an end of the answer, and could not be resumed. What was read of it is not the whole answer. */
export class StreamInterruptedError extends Error {
  override readonly name = 'StreamInterruptedError';

  constructor() {
    super('The stream ended before the answer did, and could not be resumed.');
  }
}

/** A replica has sent nothing for `idleMs`, not even a keep-alive. */
export class SilenceError extends Error {
  override readonly name = 'SilenceError';

  constructor(silent_ms: number) {
    super(`The connection was given up: nothing came for ${Math.round(silent_ms)} ms (idleMs).`);
  }
}

/** An event of the stream is larger than this client is willing to hold. */
export class EventTooLargeError extends Error {
  override readonly name = 'EventTooLargeError';

  constructor(limit_characters: number) {
    super(`An event of the stream is longer than ${limit_characters} characters.`);
  }
}

/** Holdfast has refused what was asked about a task or one of its tool calls, or could not be reached. Then the tool must not be run. */
export class LedgerError extends Error {
  override readonly name = 'LedgerError';
  /** Of Holdfast's error; undefined where no replica has answered. */
  readonly code: string | undefined;

  constructor(message: string, { code, cause }: { readonly code?: string; readonly cause?: unknown } = {}) {
    super(message, { cause });
    this.code = code;
  }
}

/** An answer could not be stopped: Holdfast has refused, could not be reached, or is not where the answer comes from. */
export class StopError extends Error {
  override readonly name = 'StopError';
  /** Of Holdfast's error, for example `url_expired`; undefined where Holdfast has not answered. */
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
 * A tool was to be run, and it is unknown whether it was: its process was lost, or it has thrown. It is not run again before
 * you have found out, since it may have had its effect.
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

  /** The tool has not run: the next process that wants to may run it. Rejects with a {@link LedgerError}. */
  release(): Promise<void> {
    return this.#release();
  }
}

/** A tool was run, and its result was too long to be kept. */
export class ResultNotKeptError extends Error {
  override readonly name = 'ResultNotKeptError';

  constructor(tool: string) {
    super(
      `'${tool}' was run by an earlier process, whose result was too long to be kept. Keep such results where the tool finds them again, and return where that is.`,
    );
  }
}
