import { VERSION } from '../lib/version.ts';
import type { TargetState } from '../metrics/metrics.ts';
import type { RunBoard } from './run-board.ts';
import { STATUS_VERSION, type StatusDocument } from './snapshot.ts';
import { StoreProbe, type StoreProbeParts } from './store-probe.ts';

export interface StatusReportParts extends StoreProbeParts {
  readonly board: RunBoard;
  readonly content: boolean;
  targets(): readonly TargetState[];
  draining(): boolean;
  active(): number;
}

/** The state of the replica as a whole. */
export class StatusReport {
  readonly #parts: StatusReportParts;
  readonly #probe: StoreProbe;
  readonly #started_at_ms: number;

  constructor(parts: StatusReportParts) {
    this.#parts = parts;
    this.#probe = new StoreProbe(parts);
    this.#started_at_ms = Math.round(parts.time.wall() - process.uptime() * 1000);
  }

  async read(): Promise<StatusDocument> {
    const { board, content, time, targets, draining, active } = this.#parts;
    const store = await this.#probe.read();
    return {
      version: STATUS_VERSION,
      name: 'holdfast',
      release: VERSION,
      status: draining() ? 'draining' : 'serving',
      now_ms: time.wall(),
      started_at_ms: this.#started_at_ms,
      uptime_s: Math.round(process.uptime()),
      active_requests: active(),
      content,
      runs: board.counts,
      interruptions: board.interruptions,
      recovery_gaps: board.gaps,
      store,
      targets: targets(),
    };
  }
}
