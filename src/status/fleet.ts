import { randomBytes } from 'node:crypto';
import type { NoteKey, Notes } from '../checkpoint/notes.ts';
import type { Owner } from '../checkpoint/store.ts';
import { isObject, parsedJson } from '../lib/json.ts';
import { inTime, type Time } from '../lib/time.ts';
import { shownText } from './shown-text.ts';
import type { FleetMember } from './snapshot.ts';

/** Maximum number of listed replicas. */
const SEATS = 64;
/** A replica counts as dead after this many intervals without a sign of life. */
const INTERVALS_PER_SIGN = 3;
/** How long a dead replica stays listed. */
const SEAT_KEPT_MS = 3_600_000;
const SEAT_RENEWED_MS = SEAT_KEPT_MS / 6;
/** Minimum interval between reads of the store, however many viewers there are. */
const READ_EVERY_MS = 2000;
const ANSWER_MAX_MS = 1000;
const ID_BYTES = 12;
const NAME_CHARACTERS_MAX = 80;

/** Facts about a replica that are kept whether it lives or not. */
interface Seat {
  readonly id: string;
  readonly name: string;
  readonly release: string;
  readonly started_at_ms: number;
}

/** What a replica reports with every sign of life. */
export interface Sign {
  readonly status: 'serving' | 'draining';
  readonly runs: number;
}

interface FleetOptions {
  readonly notes: Notes;
  /** Owner of the notes, the same for all replicas. */
  readonly owner: Owner;
  /** Whether other processes can use the same store. */
  readonly isShared: boolean;
  /** Interval between signs of life. */
  readonly interval_ms: number;
  readonly time: Time;
  /** Known once the ports are open. */
  name(): string;
  readonly release: string;
  readonly started_at_ms: number;
  sign(): Sign;
}

/**
 * The replicas that share a store, as shown on their status pages. Each occupies one of a fixed number of notes as its
 * seat and renews a second note that otherwise expires. So the store decides which replicas are dead, and no clocks are
 * compared. If the store fails, the others are shown as `unknown`.
 *
 * A replica renews its note even if no status page is open: a replica that starts takes the seat of a dead one, and a
 * single request for `/status` shows which replicas live. Both would otherwise have to wait for the others' next notes.
 */
export class Fleet {
  readonly #options: FleetOptions;
  readonly #id = randomBytes(ID_BYTES).toString('base64url');
  #seat: number | undefined;
  #seated_ms = Number.NEGATIVE_INFINITY;
  #cancelTimer = () => {};
  #beating: Promise<void> | undefined;
  #others: readonly FleetMember[] = [];
  #read_ms = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  #closed: boolean = false;

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  /** Starts giving signs of life. */
  start(): void {
    if (!this.#options.isShared) return;
    const next = () => {
      if (this.#closed) return;
      this.#cancelTimer = this.#options.time.after(this.#options.interval_ms, next);
      void this.beat();
    };
    next();
  }

  /** Gives a sign of life. Never rejects. */
  beat(): Promise<void> {
    if (!this.#options.isShared || this.#closed) return Promise.resolve();
    this.#beating ??= this.#beat()
      .catch(ignore)
      .finally(() => {
        this.#beating = undefined;
      });
    return this.#beating;
  }

  /** This replica and the others, sorted by name. Resolves within about a second, whatever the store does. */
  async read(): Promise<readonly FleetMember[]> {
    const { isShared, time } = this.#options;
    if (isShared && !this.#reading && time.now() - this.#read_ms >= READ_EVERY_MS) {
      this.#read_ms = time.now();
      this.#reading = this.#readOthers().finally(() => {
        this.#reading = undefined;
      });
    }
    await this.#reading;
    return [this.#self, ...this.#others].sort(byName);
  }

  /** Gives up the seat, because a replica that stopped in good order isn't a dead one. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelTimer();
    if (this.#seat === undefined) return;
    await inTime(this.#leave(this.#seat), this.#options.time, ANSWER_MAX_MS).catch(ignore);
  }

  get #self(): FleetMember {
    const { name, release, started_at_ms, sign } = this.#options;
    const { status, runs } = sign();
    return {
      name: shownText(name(), NAME_CHARACTERS_MAX),
      self: true,
      state: status,
      release,
      started_at_ms,
      runs,
    };
  }

  async #beat(): Promise<void> {
    const { notes, owner, interval_ms, time, sign } = this.#options;
    await notes.put(owner, signOf(this.#id), JSON.stringify(sign()), INTERVALS_PER_SIGN * interval_ms);
    if (time.now() - this.#seated_ms < SEAT_RENEWED_MS) return;
    await this.#sit();
    this.#seated_ms = time.now();
  }

  /**
   * Keeps the current seat, or takes one: that of its dead predecessor, a free one, or that of another dead replica.
   */
  async #sit(): Promise<void> {
    const { notes, owner, name, release, started_at_ms } = this.#options;
    const own: Seat = { id: this.#id, name: name(), release, started_at_ms };
    const text = JSON.stringify(own);
    const seats = await this.#seats();
    const held = seats.findIndex((seat) => seat?.id === this.#id);
    const dead = held === -1 ? await this.#deadSeats(seats) : [];
    const former = dead.find((seat) => seats[seat]?.name === own.name);
    if (held !== -1 || former !== undefined) {
      this.#seat = held === -1 ? former : held;
      await notes.put(owner, seatOf(this.#seat ?? held), text, SEAT_KEPT_MS);
      return;
    }
    for (const [seat, taken] of seats.entries()) {
      if (taken || (await notes.claim(owner, seatOf(seat), text, SEAT_KEPT_MS)) !== text) continue;
      this.#seat = seat;
      return;
    }
    this.#seat = dead[0];
    if (this.#seat !== undefined) await notes.put(owner, seatOf(this.#seat), text, SEAT_KEPT_MS);
  }

  async #leave(seat: number): Promise<void> {
    const { notes, owner } = this.#options;
    await this.#beating;
    await Promise.all([notes.consume(owner, seatOf(seat)), notes.consume(owner, signOf(this.#id))]);
  }

  async #readOthers(): Promise<void> {
    const { time } = this.#options;
    const others = await inTime(this.#findOthers(), time, ANSWER_MAX_MS).catch(ignore);
    this.#others = others ?? this.#others.map(({ runs: _, ...member }) => ({ ...member, state: 'unknown' }));
  }

  async #findOthers(): Promise<readonly FleetMember[]> {
    const seats = (await this.#seats()).filter(
      (seat) => seat !== undefined && seat.id !== this.#id,
    ) as Seat[];
    return Promise.all(
      seats.map(async ({ id, name, release, started_at_ms }) => {
        const sign = await this.#signOf(id);
        const said = sign ? { state: sign.status, runs: sign.runs } : { state: 'dead' as const };
        return {
          name: shownText(name, NAME_CHARACTERS_MAX),
          self: false,
          release: shownText(release, NAME_CHARACTERS_MAX),
          started_at_ms,
          ...said,
        };
      }),
    );
  }

  async #deadSeats(seats: readonly (Seat | undefined)[]): Promise<readonly number[]> {
    const dead = await Promise.all(
      seats.map(async (seat) => seat !== undefined && (await this.#signOf(seat.id)) === undefined),
    );
    return [...seats.keys()].filter((seat) => dead[seat]);
  }

  #seats(): Promise<readonly (Seat | undefined)[]> {
    const { notes, owner } = this.#options;
    return Promise.all(
      Array.from({ length: SEATS }, async (_, seat) => decodeSeat(await notes.get(owner, seatOf(seat)))),
    );
  }

  async #signOf(id: string): Promise<Sign | undefined> {
    const { notes, owner } = this.#options;
    return decodeSign(await notes.get(owner, signOf(id)));
  }
}

const seatOf = (seat: number): NoteKey => ({ kind: 'replica', name: String(seat) });
const signOf = (id: string): NoteKey => ({ kind: 'replica_sign', name: id });

const byName = (one: FleetMember, other: FleetMember): number =>
  one.name < other.name ? -1 : one.name > other.name ? 1 : one.started_at_ms - other.started_at_ms;

/** `undefined` if the text isn't in this format, because replicas of other versions may share the store. */
function decodeSeat(text: string | undefined): Seat | undefined {
  const seat = text === undefined ? undefined : parsedJson(text);
  if (!isObject(seat)) return undefined;
  const { id, name, release, started_at_ms } = seat;
  const isWhole = [id, name, release].every((each) => typeof each === 'string');
  return isWhole && typeof started_at_ms === 'number' ? (seat as unknown as Seat) : undefined;
}

function decodeSign(text: string | undefined): Sign | undefined {
  const sign = text === undefined ? undefined : parsedJson(text);
  if (!isObject(sign) || typeof sign.runs !== 'number') return undefined;
  const { status, runs } = sign;
  return status === 'serving' || status === 'draining' ? { status, runs } : undefined;
}

const ignore = () => undefined;
