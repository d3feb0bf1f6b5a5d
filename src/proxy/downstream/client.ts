import type { Refusal } from '../upstream/refusal.ts';
import type { Target } from '../upstream/target.ts';

/** The client's side of a run. Frames are whole SSE events or comments, never parts of one. */
export interface Client {
  /** Makes the frame of an event for a client that is sent no stream. `payload`: on one line. */
  readonly frameOf?: (payload: string) => string;
  /** True once response headers were sent; from then on there is no other status. */
  readonly opened: boolean;
  /** True once something was sent, or kept for a client that gets all of it at once: then a failure is sent as an event. */
  readonly begun: boolean;
  /** Sends status 200 and the event-stream headers together with the next write. */
  open(headers: Readonly<Record<string, string>>): void;
  /** False when the client's buffer is full: await {@link drained} before writing more. */
  write(frames: string): boolean;
  /** Resolves when the client has taken what was written, or has gone. */
  drained(): Promise<void>;
  /** Sends the last frames and the end of the response together. */
  end(frames: string): void;
  /** Answers with a plain response instead of a stream; only before {@link open}. */
  reject(
    status: number,
    headers: Readonly<Record<string, string | string[]>>,
    body: string | Uint8Array,
  ): void;
  /** Closes the connection without an end, so that the client cannot take what it has for the whole answer. */
  destroy(): void;
  /** Set where the client did not ask for a stream. */
  readonly unstreamed?: Unstreamed;
  /** Added to what is logged of the run when its client has been served. */
  logFields?: Readonly<Record<string, unknown>>;
}

/** Stands for the client of a run that continues although nothing of its answer can be sent: all of it is for the store. */
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

/** How a client that did not ask for a stream is answered by a target that gives none. */
export interface Unstreamed {
  /** With the whole answer that the target gave in its place, as it came. */
  answer(target: Target, answer: Refusal): void;
  /** By the target, which is asked as the client has asked. */
  passOn(target: Target): void;
}
