import { isUnavailable, retryAfterOf } from './answer.ts';
import { LedgerError } from './errors.ts';
import { fieldsOf } from './wires.ts';

/** A replica's refusal of a request about a task. */
export class Refusal extends Error {
  override readonly cause: LedgerError;
  /** The replica, or something in front of it, can't accept the request now. */
  readonly isClosedDoor: boolean;
  /** Asking again wouldn't help. */
  readonly isFinal: boolean;
  readonly retry_after_ms: number | undefined;

  constructor(response: Response, body: string) {
    super();
    const { status } = response;
    const { message, code } = (fieldsOf(body)?.error ?? {}) as Readonly<Record<string, unknown>>;
    const text = typeof message === 'string' ? message : `The answer was ${status}.`;
    this.cause = new LedgerError(text, { ...(typeof code === 'string' && { code }) });
    this.isClosedDoor = isUnavailable(status);
    // 429: a replica may still count a lost stream for a moment.
    this.isFinal = !this.isClosedDoor && status !== 429;
    this.retry_after_ms = retryAfterOf(response);
  }
}
