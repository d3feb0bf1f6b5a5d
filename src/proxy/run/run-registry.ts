import type { Owner, RunId } from '../../checkpoint/store.ts';
import { apiError } from '../../lib/errors.ts';
import { inTime, type Time } from '../../lib/time.ts';
import { ActiveRun } from './active-run.ts';

/** The runs under way on this replica: for its caps, to cancel one, and to hand all of them over in the end. */
export class RunRegistry {
  readonly #runs_per_owner: number;
  readonly #active = new Set<ActiveRun>();
  readonly #counts = new Map<Owner, number>();
  readonly #held = new Map<RunId, ActiveRun>();

  /** `runs_per_owner`: how many runs one owner may be delivered here at once. */
  constructor({ runs_per_owner }: { readonly runs_per_owner: number }) {
    this.#runs_per_owner = runs_per_owner;
  }

  /** A run that counts until it is answered, or ended. Throws `too_many_runs`. */
  begin(owner: Owner): ActiveRun {
    const count = this.#counts.get(owner) ?? 0;
    if (count >= this.#runs_per_owner) throw apiError('too_many_runs', { limit: this.#runs_per_owner });
    this.#counts.set(owner, count + 1);
    const active = new ActiveRun(owner, {
      onAnswered: () => this.#uncount(owner),
      onEnd: () => this.#active.delete(active),
    });
    this.#active.add(active);
    return active;
  }

  /** The run is delivered here from now on: nobody else has to see to it while `active` lasts. */
  hold(run: RunId, active: ActiveRun): void {
    this.#held.set(run, active);
    void active.ended.then(() => {
      if (this.#held.get(run) === active) this.#held.delete(run);
    });
  }

  /** Who delivers the run on this replica. */
  holder(run: RunId): ActiveRun | undefined {
    return this.#held.get(run);
  }

  /** Hands over what is under way. Resolves when all of it has ended, or after `limit_ms`. */
  async handOver(time: Time, limit_ms: number): Promise<void> {
    const active = [...this.#active];
    for (const run of active) run.handOver();
    await inTime(Promise.all(active.map(({ ended }) => ended)), time, limit_ms);
  }

  #uncount(owner: Owner): void {
    const count = (this.#counts.get(owner) ?? 1) - 1;
    if (count > 0) this.#counts.set(owner, count);
    else this.#counts.delete(owner);
  }
}
