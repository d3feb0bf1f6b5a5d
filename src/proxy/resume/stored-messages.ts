import { epochNameAt, FIRST_EPOCH_NAME } from '../../checkpoint/epoch.ts';
import type { Owner, RunId, StoredRun, Takeover } from '../../checkpoint/store.ts';
import { apiError } from '../../lib/errors.ts';
import type { RunContext } from '../run/context/run-context.ts';
import { replacedFrom, unreachable } from './reachable.ts';
import type { Cursor } from './reader.ts';
import { Replay } from './replay.ts';
import { withEnding } from './stored-ending.ts';
import { answerOf } from './stored-runs.ts';

/** What one answer may take; one message is sent however long it is. */
const BATCH_CHARACTERS = 1_048_576;

/** Ends a stream of chunks, and is no JSON: here the end is said otherwise. */
const DONE = '[DONE]';

/** What was stored between two positions. */
export interface MessageBatch {
  /** JSON each. */
  readonly messages: readonly string[];
  readonly from: Cursor;
  readonly to: Required<Cursor>;
  /** Nothing else was stored. */
  readonly isUpToDate: boolean;
  /** Nothing more will be. */
  readonly isClosed: boolean;
}

/** Where a reader begins: `end` is where the stored run ends. */
export type Start = Cursor | 'end';

/** The events of a run, in batches, as far as they are stored: what has an ordinal there keeps it. */
export class StoredMessages {
  readonly #run: RunId;
  readonly #owner: Owner;
  readonly #context: RunContext;
  readonly #replay: Replay;
  /** Those that were read and not given out yet, oldest first. */
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

  /** The last state of the run that was read. */
  get stored(): StoredRun | undefined {
    return this.#stored;
  }

  /**
   * What comes next; it may be nothing. Throws `run_not_found`, `store_unavailable`, and `cursor_ahead` where the reader has events
   * that the store has lost, or that others have taken the place of.
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
    // Only the whole of it says how it ends.
    if (stored && stored.status !== 'running' && this.#replay.seen > 0) stored = await read(0);
    if (!stored) throw apiError('run_not_found');
    this.#stored = stored;
    const whole = withEnding(this.#run, stored);
    const { seq, records, takeovers } = whole;
    const { seq: cursor, epoch } = this.#at;
    if (cursor > seq || replacedFrom(takeovers, epoch) < cursor)
      throw unreachable(stored, { run: this.#run, cursor, epoch, tail: [] });
    this.#takeovers = takeovers;
    // What was read is in `#pending`.
    for (const _ of this.#replay.pieces(records, takeovers));
    if (this.#start !== 'end') return;
    this.#start = undefined;
    this.#pending.length = 0;
    this.#at = { seq, epoch: epochNameAt(seq, takeovers) };
  }
}
