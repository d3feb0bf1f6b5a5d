import { isUnavailable, retryAfterOf } from './answer.ts';
import { LedgerError } from './errors.ts';
import { fieldsOf } from './wires.ts';

/** What a replica has answered in place of what it was asked about a task. */
export class Refusal extends Error {
  override readonly cause: LedgerError;
  /** The replica, or what stands before it, cannot take the request now. */
  readonly isClosedDoor: boolean;
  /** Asking again would not help. */
  readonly isFinal: boolean;
  readonly retry_after_ms: number | undefined;

  constructor(response: Response, body: string) {
    super();
    const { status } = response;
    const { message, code } = (fieldsOf(body)?.error ?? {}) as Readonly<Record<string, unknown>>;
    const text = typeof message === 'string' ? message : `The answer was ${status}.`;
    this.cause = new LedgerError(text, { ...(typeof code === 'string' && { code }) });
    this.isClosedDoor = isUnavailable(status);
    // 429: a replica may count a stream that was lost for a moment longer.
    this.isFinal = !this.isClosedDoor && status !== 429;
    this.retry_after_ms = retryAfterOf(response);
  }
}
