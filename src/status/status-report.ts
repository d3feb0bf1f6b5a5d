import type { Store } from '../checkpoint/store.ts';
import { inTime, type Time } from '../lib/time.ts';
import { VERSION } from '../lib/version.ts';
import type { Metrics, TargetState } from '../metrics/metrics.ts';
import type { Fleet } from './fleet.ts';
import type { RunBoard } from './run-board.ts';
import { shownText } from './shown-text.ts';
import {
  type ApiHints,
  STATUS_VERSION,
  type StatusDocument,
  type StoreState,
  type TargetStatus,
} from './snapshot.ts';

interface StatusReportParts extends StoreProbeParts {
  readonly board: RunBoard;
  readonly content: boolean;
  readonly started_at_ms: number;
  readonly fleet: Fleet;
  links(): StatusDocument['links'];
  targets(): readonly TargetState[];
  api(): ApiHints;
  draining(): boolean;
  active(): number;
}

/** The state of the whole replica. */
export class StatusReport {
  readonly #parts: StatusReportParts;
  readonly #probe: StoreProbe;

  constructor(parts: StatusReportParts) {
    this.#parts = parts;
    this.#probe = new StoreProbe(parts);
  }

  async read(): Promise<StatusDocument> {
    const { board, fleet, links, content, started_at_ms, time, draining, active, api } = this.#parts;
    const [store, members] = await Promise.all([this.#probe.read(), fleet.read()]);
    return {
      version: STATUS_VERSION,
      name: 'holdfast',
      release: VERSION,
      status: draining() ? 'draining' : 'serving',
      now_ms: time.wall(),
      started_at_ms,
      uptime_s: Math.round(process.uptime()),
      active_requests: active(),
      content,
      runs: board.counts,
      interruptions: board.interruptions,
      recovery_gaps: board.gaps,
      history: board.history.read(),
      store,
      targets: this.#targets(),
      fleet: members,
      api: api(),
      links: links(),
    };
  }

  #targets(): readonly TargetStatus[] {
    const states = new Map(
      this.#parts.targets().map(({ upstream, model, state }) => [JSON.stringify([upstream, model]), state]),
    );
    return this.#parts.board.targets.read().map((target) => {
      const state = states.get(JSON.stringify([target.upstream, target.model]));
      return { ...target, state: state ?? 'closed', alone: state === undefined };
    });
  }
}

/** Minimum interval between checks of the store, however many viewers there are. */
const ASK_EVERY_MS = 5000;
const ANSWER_MAX_MS = 1000;
const REASON_CHARACTERS_MAX = 200;

interface StoreProbeParts {
  readonly store: Store;
  readonly metrics: Pick<Metrics, 'checkpointErrors'>;
  readonly time: Time;
}

/** The state of the store, checked on demand. */
class StoreProbe {
  readonly #parts: StoreProbeParts;
  #asked_ms = Number.NEGATIVE_INFINITY;
  #answer: Pick<StoreState, 'state' | 'reason'> = { state: 'unknown' };
  #asking: Promise<void> | undefined;

  constructor(parts: StoreProbeParts) {
    this.#parts = parts;
  }

  /** Resolves within about a second, whatever the store does. */
  async read(): Promise<StoreState> {
    const { store, metrics, time } = this.#parts;
    if (!this.#asking && time.now() - this.#asked_ms >= ASK_EVERY_MS) {
      this.#asked_ms = time.now();
      this.#asking = this.#ask().finally(() => {
        this.#asking = undefined;
      });
    }
    await this.#asking;
    const { values } = await metrics.checkpointErrors.get();
    return {
      name: store.name,
      ...this.#answer,
      failed_appends: values.reduce((sum, { value }) => sum + value, 0),
    };
  }

  async #ask(): Promise<void> {
    const { store, time } = this.#parts;
    try {
      const answer = await inTime(
        store.check().then(() => true),
        time,
        ANSWER_MAX_MS,
      );
      this.#answer = answer ? { state: 'ok' } : { state: 'failing', reason: 'it does not answer' };
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unavailable';
      this.#answer = { state: 'failing', reason: shownText(reason, REASON_CHARACTERS_MAX) };
    }
  }
}
