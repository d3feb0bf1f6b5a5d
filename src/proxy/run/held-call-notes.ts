import { STORE_WAIT_MAX_MS } from '../../checkpoint/best-effort-store.ts';
import type { Sweepable } from '../../checkpoint/checkpoint-scheduler.ts';
import { inTime } from '../../lib/time.ts';
import type { HeldCalls } from '../../plans/held-calls.ts';
import type { Run } from './context/run.ts';
import type { RunContext } from './context/run-context.ts';
import { forgetHeldCalls, noteHeldCalls } from './notices/held-calls.ts';

export interface HeldCallNotesOptions {
  /** What there is to note. */
  readonly heldNow: () => HeldCalls;
  /** A replica before this one has left a note. */
  readonly isNoted: boolean;
}

/**
 * Notes which calls of a run are held, for a reader that finds the run without its replica. A call that is settled within
 * the interval of the checkpoints costs nothing; any other costs one note, however many fragments it has.
 */
export class HeldCallNotes implements Sweepable {
  readonly #run: Pick<Run, 'id' | 'owner'>;
  readonly #context: Pick<RunContext, 'store' | 'scheduler' | 'configuration' | 'time' | 'log'>;
  readonly #heldNow: () => HeldCalls;
  /** A call has begun that is not noted. */
  #isDue = false;
  #isNoted: boolean;
  #isStopped = false;
  #written: Promise<void> = Promise.resolve();

  constructor(
    run: Pick<Run, 'id' | 'owner'>,
    context: Pick<RunContext, 'store' | 'scheduler' | 'configuration' | 'time' | 'log'>,
    { heldNow, isNoted }: HeldCallNotesOptions,
  ) {
    this.#run = run;
    this.#context = context;
    this.#heldNow = heldNow;
    this.#isNoted = isNoted;
  }

  /** A call has begun. */
  began(): void {
    this.#isDue = true;
    this.#context.scheduler.later(this);
  }

  sweep(): void {
    if (!this.#isStopped) this.#note();
  }

  /** The run is another replica's. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * The run has ended here. Unless `isWhole`, what is held is noted by then, if the store takes it in time; otherwise the
   * note goes, which nothing waits for.
   */
  async end(isWhole: boolean): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    const { store, time } = this.#context;
    const { id, owner } = this.#run;
    if (!isWhole) {
      this.#note();
      await inTime(this.#written, time, STORE_WAIT_MAX_MS);
    } else if (this.#isNoted) this.#write(() => forgetHeldCalls(store.notes, owner, id));
  }

  #note(): void {
    if (!this.#isDue) return;
    this.#isDue = false;
    const held = this.#heldNow();
    if (held.calls.length === 0) return;
    this.#isNoted = true;
    const { store, configuration } = this.#context;
    const { id, owner } = this.#run;
    const ttl_ms = configuration.checkpoint.ttl_s * 1000;
    this.#write(() => noteHeldCalls(store.notes, owner, id, held, ttl_ms));
  }

  /** In order: a note that is to go must not be written after that. */
  #write(write: () => Promise<void>): void {
    this.#written = this.#written.then(write).catch((error: unknown) => {
      this.#context.log.warn(
        { run: this.#run.id, err: error },
        'held calls not noted: the store does not take it',
      );
    });
  }
}
