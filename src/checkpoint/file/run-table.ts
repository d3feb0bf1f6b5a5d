import { NOTHING_STORED } from '../append-order.ts';
import { RUNS_INDEXED_MAX } from '../run-index.ts';
import type { FinalStatus, Owner, RunId } from '../store.ts';
import type { Place } from './frame.ts';
import { LiveBytes } from './live-bytes.ts';
import type { Outcome } from './segment-log.ts';

/** What is known about a run without reading its lines. */
export interface RunState {
  /** Undefined if the first claim is damaged, so that the owner is unknown. */
  readonly owner: Owner | undefined;
  epoch: number;
  /** The replica that holds the latest epoch; undefined if there is none. */
  holder: string | undefined;
  seq: number;
  /** The final status; undefined while the run lasts. */
  status: FinalStatus | undefined;
  /** Time of the run's last frame. */
  at_ms: number;
  /** The run's entry in its owner's index. */
  entry: string | undefined;
  isPurged: boolean;
  /** Every line that counts, in order, as stretches of segment, offset and bytes. */
  places: number[];
  /** Lines that were copied elsewhere and whose segments are about to be removed. */
  replaced: readonly number[];
}

/** A run's lines, copied to the end of the log. */
export interface Copy {
  /** The result of {@link lastLineOf} when the run was copied. Lines added since then aren't in the copy. */
  readonly origin: string;
  /** Time of the run's last append. */
  readonly at_ms: number;
  /** Where the copied lines end. */
  readonly segment: number;
  readonly end: number;
}

export interface Claim {
  readonly epoch: number;
  readonly owner: Owner;
  readonly holder: string | undefined;
  /** The last event before the epoch, as far as the claiming process knew. */
  readonly base: number;
  /** Everything after the base is damaged and discarded. */
  readonly isRewound: boolean;
}

/** Numbers per entry of {@link RunState.places}. */
const NUMBERS_PER_PLACE = 3;
/** The newline of one line and that of the empty line after it. */
const EMPTY_LINE_GAP = 2;
const OK: Outcome = { code: 'ok' };
const STALE: Outcome = { code: 'stale' };
const FOREIGN: Outcome = { code: 'foreign' };
const MISSING: Outcome = { code: 'missing' };

/** The directory's runs as the log's frames define them. Every process derives the same state. */
export class RunTable {
  readonly live = new LiveBytes();
  readonly #runs = new Map<RunId, RunState>();
  readonly #running = new Set<RunId>();
  readonly #owners = new Map<Owner, Set<RunId>>();
  /** Earlier lines of the run that is created next, from before it was copied. */
  #replaced: readonly number[] = [];
  /** The copy whose lines are being read. */
  #copy: Copy | undefined;

  get(run: RunId): RunState | undefined {
    return this.#runs.get(run);
  }

  has(run: string): boolean {
    return this.#runs.has(run as RunId);
  }

  keys(): Iterable<RunId> {
    return this.#runs.keys();
  }

  get size(): number {
    return this.#runs.size;
  }

  get running(): Iterable<RunId> {
    return this.#running;
  }

  /** The index entries of an owner's runs. */
  listed(owner: Owner): readonly string[] {
    const runs = this.#owners.get(owner) ?? [];
    return [...runs].flatMap((run) => this.#runs.get(run)?.entry ?? []);
  }

  claim(run: RunId, { epoch, owner, holder, base, isRewound }: Claim, place: Place, at_ms: number): Outcome {
    const known = this.#runs.get(run);
    if (!known) {
      if (epoch !== 1) return this.#headless(run, epoch, place, at_ms);
      const state = this.#create(run, owner, at_ms);
      state.holder = holder;
      return this.#keep(state, place, at_ms);
    }
    if (known.isPurged) return this.#keep(known, place, at_ms, FOREIGN);
    if (known.owner !== owner) return FOREIGN;
    if (known.status) return { code: 'finished' };
    if (epoch !== known.epoch + 1) return { code: 'taken' };
    known.epoch = epoch;
    known.holder = holder;
    if (isRewound) known.seq = base;
    return this.#keep(known, place, at_ms);
  }

  record(run: RunId, epoch: number, seq: number, place: Place, at_ms: number): Outcome {
    const known = this.#runs.get(run);
    if (!known) return this.#headless(run, epoch, place, at_ms);
    if (known.isPurged) return this.#keep(known, place, at_ms, STALE);
    // The claim of this epoch is damaged.
    if (epoch > known.epoch) this.#enter(known, epoch);
    if (epoch < known.epoch || known.status) return STALE;
    // A record that was sent again because its fate was unknown.
    if (seq <= known.seq) return OK;
    known.seq = seq;
    return this.#keep(known, place, at_ms);
  }

  end(run: RunId, epoch: number, status: FinalStatus, place: Place, at_ms: number): Outcome {
    const known = this.#runs.get(run);
    if (!known) return this.#headless(run, epoch, place, at_ms);
    if (known.isPurged) return this.#keep(known, place, at_ms, STALE);
    if (epoch > known.epoch) this.#enter(known, epoch);
    if (epoch < known.epoch || known.status) return STALE;
    known.status = status;
    known.holder = undefined;
    this.#running.delete(run);
    this.#keep(known, place, at_ms);
    // Copying drops the array's spare capacity.
    known.places = known.places.slice();
    return OK;
  }

  enter(run: RunId, entry: string, place: Place, at_ms: number): Outcome {
    const known = this.#runs.get(run);
    if (!known?.owner) return MISSING;
    if (known.isPurged) return this.#keep(known, place, at_ms, MISSING);
    if (known.entry !== undefined) return OK;
    known.entry = entry;
    const runs = this.#owners.get(known.owner) ?? new Set();
    this.#owners.set(known.owner, runs.add(run));
    const [oldest] = runs;
    if (runs.size > RUNS_INDEXED_MAX && oldest !== undefined) this.forgetEntry(oldest);
    return this.#keep(known, place, at_ms);
  }

  forgetEntry(run: RunId): Outcome {
    const known = this.#runs.get(run);
    if (known) this.#unlist(run, known);
    return OK;
  }

  purge(run: RunId, at_ms: number): Outcome {
    const known = this.#runs.get(run);
    if (!known || known.isPurged) return MISSING;
    known.isPurged = true;
    known.at_ms = at_ms;
    this.live.remove(known.places);
    this.#running.delete(run);
    this.#unlist(run, known);
    return OK;
  }

  /** The following lines replace the earlier ones, unless the run was appended to after they were copied. */
  copy(run: RunId, copy: Copy): Outcome {
    const known = this.#runs.get(run);
    if (known && (known.isPurged || lastLineOf(known) !== copy.origin)) return STALE;
    this.#copy = copy;
    if (!known) return OK;
    const replaced = known.places;
    this.drop(run);
    this.#replaced = replaced;
    return OK;
  }

  /** Keeps a damaged line of the run, so that reading the run reports the damage. */
  damage(run: RunId, place: Place, at_ms: number): void {
    const known = this.#runs.get(run);
    if (known) this.#keep(known, place, at_ms);
  }

  drop(run: RunId): void {
    const known = this.#runs.get(run);
    if (!known) return;
    if (!known.isPurged) this.live.remove(known.places);
    this.#unlist(run, known);
    this.#running.delete(run);
    this.#runs.delete(run);
  }

  /** The lines of a purged run, which are to be overwritten. Removes them from the run's places. */
  takePlaces(run: RunId): readonly number[] {
    const known = this.#runs.get(run);
    if (!known?.isPurged) return [];
    return [...known.replaced, ...known.places.splice(0)];
  }

  #create(run: RunId, owner: Owner | undefined, at_ms: number): RunState {
    const state: RunState = {
      owner,
      epoch: 1,
      holder: undefined,
      seq: NOTHING_STORED,
      status: undefined,
      at_ms,
      entry: undefined,
      isPurged: false,
      places: [],
      replaced: this.#replaced,
    };
    this.#replaced = [];
    this.#runs.set(run, state);
    if (owner !== undefined) this.#running.add(run);
    return state;
  }

  /** Creates a run whose claim is damaged and keeps this line, so that reading the run reports the damage. */
  #headless(run: RunId, epoch: number, place: Place, at_ms: number): Outcome {
    const state = this.#create(run, undefined, at_ms);
    state.epoch = epoch;
    return this.#keep(state, place, at_ms, FOREIGN);
  }

  #enter(known: RunState, epoch: number): void {
    known.epoch = epoch;
    known.holder = '';
  }

  #keep(state: RunState, place: Place, at_ms: number, outcome = OK): Outcome {
    if (this.#copy && (place.segment !== this.#copy.segment || place.offset >= this.#copy.end))
      this.#copy = undefined;
    state.at_ms = this.#copy?.at_ms ?? at_ms;
    const kept_bytes = addPlace(state.places, place);
    if (!state.isPurged) this.live.add(place.segment, kept_bytes);
    return outcome;
  }

  #unlist(run: RunId, known: RunState): void {
    if (!known.owner || known.entry === undefined) return;
    known.entry = undefined;
    const runs = this.#owners.get(known.owner);
    runs?.delete(run);
    if (runs?.size === 0) this.#owners.delete(known.owner);
  }
}

/** Where a run's last line ends, which changes with every append. */
export function lastLineOf({ places }: RunState): string {
  const [segment = 0, offset = 0, bytes = 0] = places.slice(-NUMBERS_PER_PLACE);
  return `${segment}:${offset + bytes}`;
}

/**
 * Adds a line to a run's places. A line that directly follows the last one, or is separated from it only by the empty
 * line that begins a write, extends that stretch. Returns the number of bytes added.
 */
function addPlace(places: number[], { segment, offset, bytes }: Place): number {
  const last = places.length - NUMBERS_PER_PLACE;
  const start = places[last + 1] as number;
  const gap = offset - start - (places[last + 2] as number);
  if (places[last] !== segment || gap > EMPTY_LINE_GAP) {
    places.push(segment, offset, bytes);
    return bytes;
  }
  places[last + 2] = offset + bytes - start;
  return gap + bytes;
}
