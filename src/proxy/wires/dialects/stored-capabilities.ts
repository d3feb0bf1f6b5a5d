import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import { BestEffortStore } from '../../../checkpoint/best-effort-store.ts';
import type { NoteKey, Notes } from '../../../checkpoint/notes.ts';
import type { Owner } from '../../../checkpoint/store.ts';
import type { Configuration } from '../../../config/configuration.ts';
import { remember } from '../../../lib/bounded-map.ts';
import { isObject, parsedJson } from '../../../lib/json.ts';
import type { Time } from '../../../lib/time.ts';
import type { PrefillManner } from '../../../plans/seam/mode.ts';
import { type Capabilities, REMEMBERED_FOR_MS } from './capability-memory.ts';
import { DIALECTS } from './registry.ts';

/**
 * How long a failed lookup isn't repeated, except after an interruption: another replica may have learned something
 * meanwhile.
 */
const ABSENT_FOR_MS = 60_000;
/** Clients name models, so the table of lookups and the daily number of stored findings must be bounded. */
const SEARCHES_MAX = 10_000;
const STORED_MAX = 1000;

interface StoredCapabilitiesOptions {
  readonly notes: Notes;
  /** Owner of the notes, the same for all replicas. */
  readonly owner: Owner;
  readonly upstreams: Configuration['upstreams'];
  readonly time: Time;
  readonly log: Logger;
}

/** A model of an upstream. */
export interface Subject {
  readonly upstream: string;
  readonly model: string;
}

/** Distinct for distinct subjects. Cheaper than JSON, because every run needs it several times. */
export const keyOfSubject = ({ upstream, model }: Subject): string =>
  `${upstream.length} ${upstream}${model}`;

type OnFound = (found: Capabilities, remembered_for_ms: number) => void;

/**
 * Findings about models as notes in the store, shared with later processes and with all replicas on the same store.
 * Reads and writes happen in the background. A failing store is left alone for a while, as if there were none.
 */
export class StoredCapabilities {
  readonly #options: StoredCapabilitiesOptions;
  readonly #patience: BestEffortStore;
  /** When each lookup may be repeated, by {@link keyOfSubject}, oldest first. */
  readonly #searches = new Map<string, number>();
  readonly #underWay = new Map<string, Promise<void>>();
  /** Expiry of what this process has stored, oldest first. */
  readonly #stored = new Map<string, number>();
  /** Records that the store did not accept. */
  readonly #unsaved = new Map<string, () => string>();
  readonly #addresses = new Map<string, string>();

  constructor(options: StoredCapabilitiesOptions) {
    this.#options = options;
    this.#patience = new BestEffortStore(options, 'what was learnt about models is not shared');
  }

  /** Looks it up in the background, unless that was done recently. */
  look(subject: Subject, onFound: OnFound): void {
    const key = keyOfSubject(subject);
    const now_ms = this.#options.time.now();
    if ((this.#searches.get(key) ?? 0) > now_ms || this.#patience.isResting) return;
    remember(this.#searches, key, now_ms + ABSENT_FOR_MS, SEARCHES_MAX);
    void this.#search(this.#nameOf(subject), subject, onFound);
  }

  /** Looks it up now. Resolves once found or unavailable, within the time limit for requests. */
  async find(subject: Subject, onFound: OnFound): Promise<void> {
    if (this.#patience.isResting) return;
    const name = this.#nameOf(subject);
    await (this.#underWay.get(name) ?? this.#search(name, subject, onFound));
  }

  /** Stores it once running lookups have ended; `latest` may include their results. */
  keep(subject: Subject, latest: () => Capabilities): void {
    const name = this.#nameOf(subject);
    const learnt_at_ms = this.#options.time.wall();
    if (this.#mayStore(name)) void this.#store(name, () => encodeCapabilities(latest(), learnt_at_ms));
  }

  /** Retries writes that failed earlier. Cheap, so call it often. */
  catchUp(): void {
    if (this.#unsaved.size === 0 || this.#patience.isResting) return;
    const unsaved = [...this.#unsaved];
    this.#unsaved.clear();
    for (const [name, record] of unsaved) void this.#store(name, record);
  }

  async #store(name: string, record: () => string): Promise<void> {
    await this.#underWay.get(name);
    if (this.#patience.isResting) {
      this.#unsaved.set(name, record);
      return;
    }
    const { notes, owner } = this.#options;
    await notes.put(owner, keyOf(name), record(), REMEMBERED_FOR_MS).catch((error: unknown) => {
      this.#unsaved.set(name, record);
      this.#patience.rest(error);
    });
  }

  #search(name: string, subject: Subject, onFound: OnFound): Promise<void> {
    const { notes, owner } = this.#options;
    const use = (text: string | undefined) => {
      if (text !== undefined) this.#use(text, subject, onFound);
    };
    const search = this.#patience
      .answerOf(notes.get(owner, keyOf(name)), use)
      .then(use)
      .finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, search);
    return search;
  }

  #use(text: string, { upstream }: Subject, onFound: OnFound): void {
    const { time, log } = this.#options;
    const found = decodeCapabilities(text);
    if (!found) {
      log.warn({ upstream }, 'stored facts about a model are unusable: learning them again');
      return;
    }
    const age_ms = Math.max(0, time.wall() - found.learnt_at_ms);
    if (age_ms < REMEMBERED_FOR_MS) onFound(found, REMEMBERED_FOR_MS - age_ms);
  }

  #mayStore(name: string): boolean {
    const now_ms = this.#options.time.now();
    for (const [oldest, until_ms] of this.#stored) {
      if (until_ms > now_ms) break;
      this.#stored.delete(oldest);
    }
    if (!this.#stored.has(name) && this.#stored.size >= STORED_MAX) return false;
    this.#stored.delete(name);
    this.#stored.set(name, now_ms + REMEMBERED_FOR_MS);
    return true;
  }

  /**
   * Capabilities depend on an upstream's dialect and address, so both are part of the name. The address is hashed,
   * because it may contain keys.
   */
  #nameOf({ upstream, model }: Subject): string {
    return JSON.stringify([upstream, this.#addressOf(upstream), model]);
  }

  #addressOf(upstream: string): string {
    const known = this.#addresses.get(upstream);
    if (known !== undefined) return known;
    const { base_url = '', dialect = '' } = this.#options.upstreams[upstream] ?? {};
    const address = createHash('sha256')
      .update(JSON.stringify([base_url, dialect]))
      .digest('hex');
    this.#addresses.set(upstream, address);
    return address;
  }
}

const keyOf = (name: string): NoteKey => ({ kind: 'capabilities', name });

/** Increase it with every change of format, because replicas of several versions may share a store. */
const VERSION = 1;
const MANNERS: ReadonlySet<unknown> = new Set<PrefillManner>(['exact', 'echo', 'new_turn']);

/** Encodes capabilities for a note. `learnt_at_ms`: milliseconds since 1970. */
export function encodeCapabilities({ prefill, keeps, dialect }: Capabilities, learnt_at_ms: number): string {
  return JSON.stringify({ version: VERSION, learnt_at_ms, prefill, keeps, dialect: dialect?.name });
}

/** `undefined` for an invalid record, or one with unknown values: a partial record could mislead. */
export function decodeCapabilities(
  text: string,
): (Capabilities & { readonly learnt_at_ms: number }) | undefined {
  const record = parsedJson(text);
  if (!isObject(record) || record.version !== VERSION) return undefined;
  const { learnt_at_ms, prefill, keeps, dialect } = record;
  if (typeof learnt_at_ms !== 'number' || learnt_at_ms < 0) return undefined;
  if (prefill !== undefined && !MANNERS.has(prefill)) return undefined;
  if (keeps !== undefined && typeof keeps !== 'boolean') return undefined;
  if (dialect !== undefined && !(typeof dialect === 'string' && Object.hasOwn(DIALECTS, dialect)))
    return undefined;
  return {
    learnt_at_ms,
    prefill: prefill as PrefillManner | undefined,
    keeps,
    dialect: dialect === undefined ? undefined : DIALECTS[dialect as keyof typeof DIALECTS],
  };
}
