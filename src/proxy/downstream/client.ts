import type { Refusal } from '../upstream/refusal.ts';
import type { Target } from '../upstream/target.ts';

/** The client's side of a run. Frames are complete SSE events or comments. */
export interface Client {
  /** Formats an event for a client without a stream. `payload`: a single line. */
  readonly frameOf?: (payload: string) => string;
  /** True once the response headers were sent, after which the status is fixed. */
  readonly opened: boolean;
  /**
   * True once content was sent, or buffered for a client that receives everything at once. From then on, failures are
   * sent as events.
   */
  readonly begun: boolean;
  /** Sends status 200 and the event-stream headers with the next write. */
  open(headers: Readonly<Record<string, string>>): void;
  /** Returns false if the client's buffer is full: await {@link drained} before the next write. */
  write(frames: string): boolean;
  /** Resolves once the client has accepted the written data, or has disconnected. */
  drained(): Promise<void>;
  /** Sends the last frames and the end of the response together. */
  end(frames: string): void;
  /** Answers with a plain response instead of a stream; only before {@link open}. */
  reject(
    status: number,
    headers: Readonly<Record<string, string | string[]>>,
    body: string | Uint8Array,
  ): void;
  /** Closes the connection without an end, so that the client can't mistake the partial answer for a complete one. */
  destroy(): void;
  /** Set if the client asked for an answer without a stream. */
  readonly unstreamed?: Unstreamed;
  /** Extra fields for the log entry at the end of the run. */
  logFields?: Readonly<Record<string, unknown>>;
}

/** A stand-in for a run that continues without a client: its answer goes only to the store. */
export const absentClient = (): Client => ({
  opened: true,
  begun: true,
  open() {},
  write: () => true,
  async drained() {},
  end() {},
  reject() {},
  destroy() {},
});

/** How to answer a client without a stream if the target does not stream either. */
export interface Unstreamed {
  /** Forwards the complete answer that the target gave instead of a stream. */
  answer(target: Target, answer: Refusal): void;
  /** Sends the client's original request to the target. */
  passOn(target: Target): void;
}
