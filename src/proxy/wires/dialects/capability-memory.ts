import { remember } from '../../../lib/bounded-map.ts';
import type { Time } from '../../../lib/time.ts';
import type { PrefillManner } from '../../../plans/seam/mode.ts';
import type { Target } from '../../upstream/target.ts';
import type { Dialect, Samples } from '../common/dialect.ts';
import { RefusedThoughts } from './refused-thoughts.ts';
import { DIALECTS, dialectAt, dialectBehind } from './registry.ts';
import { keyOfSubject, type StoredCapabilities, type Subject } from './stored-capabilities.ts';

/**
 * Long enough that a day's recoveries need no further trial, short enough to notice a provider's upgrade. Counted from
 * the last finding, so a restart doesn't extend it.
 */
export const REMEMBERED_FOR_MS = 24 * 60 * 60 * 1000;

/** Findings about one model of an upstream; `undefined` means unknown. */
export interface Capabilities {
  readonly prefill: PrefillManner | undefined;
  /** Whether answers are stored in a way that can be stopped. */
  readonly keeps: boolean | undefined;
  readonly dialect: Dialect | undefined;
}

export const NOTHING: Capabilities = { prefill: undefined, keeps: undefined, dialect: undefined };

/** Clients name models, so the table must be bounded. */
const ENTRIES_MAX = 10_000;
/** How long no other probe starts after one that is running or was inconclusive. */
const UNPROBED_FOR_MS = 60_000;

/**
 * Findings about assistant prefill, stored answers, and servers that their address doesn't identify. Kept per upstream
 * and model, because a gateway has another server behind each. With a store, unknown facts are looked up there in the
 * background.
 */
export class CapabilityMemory {
  /** Not shared with other processes. */
  readonly refusedThoughts = new RefusedThoughts();
  readonly #time: Time;
  readonly #entries = new Map<string, Capabilities & { readonly until_ms: number }>();
  /** By base URL; the configuration bounds their number. */
  readonly #addresses = new Map<string, Dialect | undefined>();
  readonly #probes = new Map<string, { readonly settled: Promise<void>; readonly until_ms: number }>();
  readonly #stored: StoredCapabilities | undefined;

  constructor(time: Time, stored?: StoredCapabilities) {
    this.#time = time;
    this.#stored = stored;
  }

  /** If prefill is unknown here, resolves once the findings of other processes have been looked up. */
  async consult(upstream: string, model: string): Promise<void> {
    const subject = { upstream, model };
    if (this.#stored && this.#recall(subject).prefill === undefined)
      await this.#stored.find(subject, (found, for_ms) => this.#adopt(subject, found, for_ms));
  }

  /**
   * Runs `ask` to find out about prefill, and remembers the result. Concurrent callers share one probe, and an
   * inconclusive one isn't repeated for a while. Never rejects.
   */
  probe(upstream: string, model: string, ask: () => Promise<PrefillManner | undefined>): Promise<void> {
    const key = keyOfSubject({ upstream, model });
    const now_ms = this.#time.now();
    const known = this.#probes.get(key);
    if (known && known.until_ms > now_ms) return known.settled;
    const settled = ask().then(
      (manner) => {
        if (manner) this.rememberPrefill(upstream, model, manner);
      },
      () => {},
    );
    remember(this.#probes, key, { settled, until_ms: now_ms + UNPROBED_FOR_MS }, ENTRIES_MAX);
    return settled;
  }

  /** `undefined` if unknown. */
  prefill(upstream: string, model: string): PrefillManner | undefined {
    return this.#recall({ upstream, model }).prefill;
  }

  rememberPrefill(upstream: string, model: string, prefill: PrefillManner): void {
    const subject = { upstream, model };
    this.#learn(subject, { ...this.#recall(subject), prefill });
  }

  /** Whether answers are stored in a way that can be stopped; `undefined` if unknown. */
  keeps(upstream: string, model: string): boolean | undefined {
    return this.#recall({ upstream, model }).keeps;
  }

  rememberKeeping(upstream: string, model: string, keeps: boolean): void {
    const subject = { upstream, model };
    this.#learn(subject, { ...this.#recall(subject), keeps });
  }

  /**
   * The configured dialect, else the one for the address, else a learned one; `undefined` if unknown. `model`: may be
   * the client's name for it.
   */
  dialect(target: Target, model: string): Dialect | undefined {
    return this.#given(target) ?? this.#recall(subjectOf(target, model)).dialect;
  }

  /** Learns the dialect of an unknown target, if its stream identifies the server. */
  recognise(target: Target, model: string, traces: Samples): void {
    if (this.dialect(target, model)) return;
    const dialect = dialectBehind(traces);
    // Findings from requests without the dialect's fields don't apply to requests with them.
    if (dialect) this.#learn(subjectOf(target, model), { ...NOTHING, dialect });
  }

  #given({ upstream: { base_url, dialect } }: Target): Dialect | undefined {
    if (dialect !== undefined) return DIALECTS[dialect];
    if (!this.#addresses.has(base_url)) this.#addresses.set(base_url, dialectAt(base_url));
    return this.#addresses.get(base_url);
  }

  #recall(subject: Subject): Capabilities {
    this.#stored?.catchUp();
    const known = this.#known(subject);
    if (known) return known;
    this.#stored?.look(subject, (found, for_ms) => this.#adopt(subject, found, for_ms));
    return NOTHING;
  }

  #known(subject: Subject): (Capabilities & { readonly until_ms: number }) | undefined {
    const key = keyOfSubject(subject);
    const entry = this.#entries.get(key);
    if (!entry || entry.until_ms > this.#time.now()) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  #learn(subject: Subject, learnt: Capabilities): void {
    this.#set(subject, learnt, this.#time.now() + REMEMBERED_FOR_MS);
    this.#stored?.keep(subject, () => this.#known(subject) ?? learnt);
  }

  /** Adopts another process's findings. */
  #adopt(subject: Subject, found: Capabilities, for_ms: number): void {
    const known = this.#known(subject);
    const until_ms = this.#time.now() + for_ms;
    // Adopting a finding doesn't extend its lifetime.
    if (known) this.#set(subject, merged(known, found), Math.min(known.until_ms, until_ms));
    else this.#set(subject, found, until_ms);
  }

  #set(subject: Subject, { prefill, keeps, dialect }: Capabilities, until_ms: number): void {
    remember(this.#entries, keyOfSubject(subject), { prefill, keeps, dialect, until_ms }, ENTRIES_MAX);
  }
}

/** Combines two sets of findings about one model; those from `here` take precedence. */
export function merged(here: Capabilities, elsewhere: Capabilities): Capabilities {
  if (here.dialect === elsewhere.dialect)
    return {
      prefill: here.prefill ?? elsewhere.prefill,
      keeps: here.keeps ?? elsewhere.keeps,
      dialect: here.dialect,
    };
  // Findings from requests without the dialect's fields don't apply to requests with them.
  return here.dialect ? here : elsewhere.dialect ? elsewhere : here;
}

const subjectOf = ({ name, model: renamed }: Target, model: string): Subject => ({
  upstream: name,
  model: renamed ?? model,
});
