import { epochNameAt, FIRST_EPOCH_NAME } from '../../checkpoint/epoch.ts';
import type { Owner, RunId, StoredRun, Takeover } from '../../checkpoint/store.ts';
import { apiError } from '../../lib/errors.ts';
import type { RunContext } from '../run/context/run-context.ts';
import { replacedFrom, unreachable } from './reachable.ts';
import type { Cursor } from './reader.ts';
import { Replay } from './replay.ts';
import { withEnding } from './stored-ending.ts';
import { answerOf } from './stored-runs.ts';

/** Maximum size of a batch; a single message may exceed it. */
const BATCH_CHARACTERS = 1_048_576;

/** Ends a stream of chunks. It isn't JSON, and batches signal the end themselves. */
const DONE = '[DONE]';

/** Stored messages between two positions. */
export interface MessageBatch {
  /** One JSON text per message. */
  readonly messages: readonly string[];
  readonly from: Cursor;
  readonly to: Required<Cursor>;
  /** The batch reaches the end of what is stored. */
  readonly isUpToDate: boolean;
  /** No more messages will be stored. */
  readonly isClosed: boolean;
}

/** Where a reader begins; `end` is the end of the stored run. */
export type Start = Cursor | 'end';

/** The stored events of a run, in batches. Stored events keep their ordinals. */
export class StoredMessages {
  readonly #run: RunId;
  readonly #owner: Owner;
  readonly #context: RunContext;
  readonly #replay: Replay;
  /** Messages read but not yet returned, oldest first. */
  readonly #pending: string[] = [];
  #start: Start | undefined;
  #at: Required<Cursor>;
  #stored: StoredRun | undefined;
  #takeovers: readonly Takeover[] = [];

  constructor({ run, owner }: { run: RunId; owner: Owner }, start: Start, context: RunContext) {
    this.#run = run;
    this.#owner = owner;
    this.#context = context;
    this.#start = start;
    const { seq, epoch = FIRST_EPOCH_NAME } = start === 'end' ? { seq: 0 } : start;
    this.#at = { seq, epoch };
    this.#replay = new Replay({ run, cursor: seq, epoch, resumable: false }, (payload) => {
      this.#pending.push(payload);
      return '';
    });
  }

  /** The state of the run at the last read. */
  get stored(): StoredRun | undefined {
    return this.#stored;
  }

  /**
   * The next batch, which may be empty. Throws `run_not_found`, `store_unavailable`, and `cursor_ahead` if the reader
   * has events that the store lost or replaced.
   */
  async next(): Promise<MessageBatch> {
    if (this.#pending.length === 0) await this.#read();
    const from = this.#at;
    const messages: string[] = [];
    let characters = 0;
    let { seq } = from;
    while (this.#pending.length > 0 && characters < BATCH_CHARACTERS) {
      const payload = this.#pending.shift() as string;
      seq++;
      if (payload === DONE) continue;
      messages.push(payload);
      characters += payload.length;
    }
    this.#at = { seq, epoch: epochNameAt(seq, this.#takeovers) };
    const isUpToDate = this.#pending.length === 0;
    return { messages, from, to: this.#at, isUpToDate, isClosed: isUpToDate && this.#isOver };
  }

  get #isOver(): boolean {
    return this.#stored?.status !== 'running';
  }

  async #read(): Promise<void> {
    const { store } = this.#context;
    const read = (from: number) => answerOf(store.read(this.#run, this.#owner, from), this.#context);
    let stored = await read(this.#replay.seen);
    // The ending depends on the whole run.
    if (stored && stored.status !== 'running' && this.#replay.seen > 0) stored = await read(0);
    if (!stored) throw apiError('run_not_found');
    this.#stored = stored;
    const whole = withEnding(this.#run, stored);
    const { seq, records, takeovers } = whole;
    const { seq: cursor, epoch } = this.#at;
    if (cursor > seq || replacedFrom(takeovers, epoch) < cursor)
      throw unreachable(stored, { run: this.#run, cursor, epoch, tail: [] });
    this.#takeovers = takeovers;
    // Replaying adds the payloads to `#pending`.
    for (const _ of this.#replay.pieces(records, takeovers));
    if (this.#start !== 'end') return;
    this.#start = undefined;
    this.#pending.length = 0;
    this.#at = { seq, epoch: epochNameAt(seq, takeovers) };
  }
}
