import { numbersOf } from './frame.ts';
import { encodeCopy, encodeNoteFrame, type LogState, noteTextOf } from './log-state.ts';
import { isReplicaName } from './names.ts';
import { originOf } from './note-table.ts';
import { isCode, type PrivateDirectory } from './private-directory.ts';
import type { RunLog } from './run-log.ts';
import type { RunState } from './run-table.ts';
import type { SegmentLog } from './segment-log.ts';

export const UPKEEP_EVERY_MS = 60_000;
/** A dead replica's sign of life is removed after this many leases, long after it has expired. */
const LEASES_REMEMBERED = 100;
/**
 * Maximum number of runs in a directory. Above it, the oldest finished runs are forgotten, because each takes memory.
 */
const RUNS_KEPT_MAX = 200_000;
/** A segment's live lines are copied once they are less than this share of it. */
const COPIED_SHARE_MAX = 0.25;

export interface UpkeepOptions {
  readonly directory: PrivateDirectory;
  readonly log: SegmentLog;
  readonly state: LogState;
  readonly runs: RunLog;
  /** How long a run is kept after its last append. */
  readonly ttl_ms: number;
  /** How long a complete run is kept. */
  readonly complete_ttl_ms: number;
  readonly lease_ms: number;
  /** Default {@link RUNS_KEPT_MAX}. */
  readonly runs_max?: number | undefined;
  /** Called once, when there are more runs than that. */
  onError(error: Error): void;
}

/**
 * Forgets expired runs and notes and removes segments, oldest first, so that no frame outlives a later one that revokes
 * it.
 */
export class Upkeep {
  readonly #options: UpkeepOptions;
  #isFull: boolean = false;

  constructor(options: UpkeepOptions) {
    this.#options = options;
  }

  /** One pass. Every process makes passes; work done by one is already done for the others. */
  pass(): void {
    const { log, state } = this.#options;
    log.catchUp();
    this.#expire();
    state.notes.expire(Date.now());
    this.#removeReplicas();
    for (const segment of log.segments()) if (segment >= log.segment || !this.#removeSegment(segment)) return;
  }

  /** Never forgets a run that a live replica holds. */
  #expire(): void {
    const { state, runs, ttl_ms, complete_ttl_ms } = this.#options;
    const isAlive = runs.livingReplicas();
    const now_ms = Date.now();
    for (const run of state.runs.keys()) {
      const { status, at_ms, holder } = state.runs.get(run) as RunState;
      const kept_ms = status === 'complete' ? Math.min(complete_ttl_ms, ttl_ms) : ttl_ms;
      if (now_ms - at_ms < kept_ms || (holder !== undefined && isAlive(holder))) continue;
      state.runs.drop(run);
    }
    this.#expireBeyondMax();
  }

  #expireBeyondMax(): void {
    const { state, runs_max = RUNS_KEPT_MAX, onError } = this.#options;
    if (state.runs.size > runs_max && !this.#isFull) {
      this.#isFull = true;
      const what = `the directory keeps ${runs_max} runs at most: the oldest finished ones are forgotten before their time`;
      onError(new Error(`${what}; shorten checkpoint.ttl_s or checkpoint.complete_ttl_s, or use Redis`));
    }
    for (const run of state.runs.keys()) {
      if (state.runs.size <= runs_max) return;
      if (state.runs.get(run)?.status) state.runs.drop(run);
    }
  }

  /** Removes a segment unless too much of it is still live. True if it was removed. */
  #removeSegment(segment: number): boolean {
    const { log, state } = this.#options;
    const live = state.runs.live.of(segment) + state.notes.live.of(segment);
    if (live > COPIED_SHARE_MAX * log.bytesOf(segment)) return false;
    try {
      if (live > 0 && !this.#copy(segment)) return false;
    } catch (error) {
      // Another process has copied the live lines and removed the segment.
      if (isCode(error, 'ENOENT')) return false;
      throw error;
    }
    log.remove(segment);
    return true;
  }

  /**
   * Appends copies of the segment's live lines. False if something wasn't copied, such as a run that was appended to in
   * the meantime.
   */
  #copy(segment: number): boolean {
    const { log, state } = this.#options;
    const parts: Buffer[] = [];
    for (const run of state.runs.keys()) {
      const known = state.runs.get(run) as RunState;
      if (!known.isPurged && liesIn(known.places, segment))
        parts.push(encodeCopy(run, known, known.at_ms, log.read(known.places)));
    }
    for (const [digest, place, expires_at_ms] of state.notes.within(segment)) {
      const text = noteTextOf(log.read(numbersOf(place)));
      const note = { digest, text, expires_at_ms, mode: 'copy', origin: originOf(place) } as const;
      parts.push(Buffer.from(encodeNoteFrame({ ...note, at_ms: Date.now() })));
    }
    log.append(Buffer.concat(parts));
    return state.runs.live.of(segment) + state.notes.live.of(segment) === 0;
  }

  #removeReplicas(): void {
    const { directory, lease_ms } = this.#options;
    for (const name of directory.names()) {
      if (!isReplicaName(name)) continue;
      const modified_ms = directory.modified_ms(name);
      if (modified_ms !== undefined && Date.now() - modified_ms >= LEASES_REMEMBERED * lease_ms)
        directory.remove(name);
    }
  }
}

function liesIn(places: readonly number[], segment: number): boolean {
  for (let at = 0; at < places.length; at += 3) if (places[at] === segment) return true;
  return false;
}
