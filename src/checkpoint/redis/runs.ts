import { remember } from '../../lib/bounded-map.ts';
import type { Seal } from '../seal.ts';
import type { RunId } from '../store.ts';
import type { RedisConnection } from './connection.ts';
import { logKey } from './keys.ts';
import {
  decodeEnd,
  decodeEntry,
  decodeOpening,
  END_NUMBER,
  type EntryId,
  LogReader,
  type OpenedEpoch,
  type Opening,
  parseId,
  recordNumber,
} from './log.ts';
import type { RawEntry } from './scripts.ts';

/** Maximum number of entries per reply. */
const PAGE = 256;

/** The latest epoch of a run, without its records. */
export interface LatestEpoch {
  readonly opening: Opening;
  readonly isFinished: boolean;
}

/** How many recently read runs are remembered as sound. */
const SOUND_RUNS_MAX = 10_000;

/** Reads logs of runs, remembering which ones were sound. */
export class RedisRuns {
  readonly #connection: RedisConnection;
  readonly #seal: Seal | undefined;
  /** The event up to which a run was found undamaged, so that a later read may start there. */
  readonly #sound = new Map<RunId, number>();

  constructor(connection: RedisConnection, seal: Seal | undefined) {
    this.#connection = connection;
    this.#seal = seal;
  }

  /** The whole log; undefined if there is none. */
  async whole(run: RunId): Promise<LogReader | undefined> {
    const reader = new LogReader(run, this.#seal);
    await this.readOn(reader);
    this.#sound.delete(run);
    if (reader.last_id === '') return undefined;
    if (!reader.prefix.damage) this.#remember(run, reader.prefix.seq);
    return reader;
  }

  /** The log from the cursor `from`; undefined if only reading the whole log can tell what follows the cursor. */
  async tail(run: RunId, from: number): Promise<LogReader | undefined> {
    const sound_seq = this.#sound.get(run);
    if (sound_seq === undefined) return undefined;
    // The lowest possible number of an entry with events after the cursor.
    const reply = await this.#latest(run, recordNumber(from + 1), PAGE);
    if (!reply) return undefined;
    const { last_id, opened, entries } = reply;
    const seq = opened && seqBefore(entries[0], parseId(last_id), opened);
    if (!opened || seq === undefined || seq > Math.min(from, sound_seq) || opened.opening.base > from)
      return undefined;
    const reader = new LogReader(run, this.#seal, { opened, seq, last_id });
    for (const entry of entries) reader.add(entry);
    if (entries.length === PAGE) await this.readOn(reader);
    if (reader.prefix.damage) return undefined;
    this.#remember(run, reader.prefix.seq);
    return reader;
  }

  /** `unproven`: the latest epoch exists, but its opening couldn't be verified. */
  async latest(run: RunId): Promise<LatestEpoch | 'unproven' | undefined> {
    const reply = await this.#latest(run, END_NUMBER, 1);
    if (!reply?.opened) return reply?.isOpened ? 'unproven' : undefined;
    return { opening: reply.opened.opening, isFinished: reply.entries.length > 0 };
  }

  #remember(run: RunId, seq: number): void {
    remember(this.#sound, run, seq, SOUND_RUNS_MAX);
  }

  async #latest(run: RunId, number: string, count: number) {
    const reply = await this.#connection.ask((client) =>
      client.holdfastTailBuffer(logKey(run), number, String(count)),
    );
    if (!reply) return undefined;
    const [last_id, opening, entries] = reply;
    const opened = opening.length === 0 ? undefined : decodeOpening(opening, run, this.#seal);
    return {
      last_id: last_id.toString(),
      isOpened: opening.length > 0,
      opened: opened && 'value' in opened ? opened.value : undefined,
      entries,
    };
  }

  /** Removes a finished run's log, to which nothing is ever written again. */
  async remove(run: RunId): Promise<void> {
    this.#sound.delete(run);
    await this.#connection.ask((client) => client.unlink(logKey(run)));
  }

  /** Reads the entries after those already read. */
  async readOn(reader: LogReader): Promise<void> {
    const key = logKey(reader.run);
    let page: readonly RawEntry[];
    do {
      const start = reader.last_id === '' ? '-' : `(${reader.last_id}`;
      page = await this.#connection.ask((client) => client.xrangeBuffer(key, start, '+', 'COUNT', PAGE));
      for (const entry of page) reader.add(entry);
    } while (page.length === PAGE);
  }
}

/** The event before the first entry, or the last event if there are no entries; undefined if unknown. */
function seqBefore(
  first: RawEntry | undefined,
  last: EntryId,
  { opening, seal }: OpenedEpoch,
): number | undefined {
  if (!first) return last.kind === 'opening' ? opening.base : last.seq;
  if (parseId(first[0].toString()).kind === 'end') {
    const end = decodeEnd(first, seal);
    return 'reason' in end ? undefined : end.value.seq;
  }
  const read = decodeEntry(first, seal);
  return 'reason' in read ? undefined : read.value.seq - read.value.events.length;
}
