import { remember } from '../../../lib/bounded-map.ts';
import type { Time } from '../../../lib/time.ts';
import type { PrefillManner } from '../../../plans/seam/mode.ts';
import type { Target } from '../../upstream/target.ts';
import type { Dialect, Samples } from '../common/dialect.ts';
import { RefusedThoughts } from './refused-thoughts.ts';
import { DIALECTS, dialectAt, dialectBehind } from './registry.ts';
import type { StoredCapabilities, Subject } from './stored-capabilities.ts';

/**
 * Long enough to spare a day's recoveries the trial, short enough to notice a provider's upgrade. Counted from when
 * something was learnt last: a restart does not make it younger.
 */
export const REMEMBERED_FOR_MS = 24 * 60 * 60 * 1000;

/** What was learnt about one model of an upstream; `undefined` is what is not known. */
export interface Capabilities {
  readonly prefill: PrefillManner | undefined;
  /** Whether answers are kept in a way that can be ended. */
  readonly keeps: boolean | undefined;
  readonly dialect: Dialect | undefined;
}

export const NOTHING: Capabilities = { prefill: undefined, keeps: undefined, dialect: undefined };

/** Models are named by clients, so the table must not grow with them. */
const ENTRIES_MAX = 10_000;
/** After a probe that found nothing out, or is under way. */
const UNPROBED_FOR_MS = 60_000;

/**
 * What was learnt about assistant prefill, about answers that are kept, and about the servers behind addresses that say nothing. Per upstream and
 * model: a gateway has another server behind each. Where there is a store, what this process does not know is looked for there in the background.
 */
export class CapabilityMemory {
  /** Known to this process alone. */
  readonly refusedThoughts = new RefusedThoughts();
  readonly #time: Time;
  readonly #entries = new Map<string, Capabilities & { readonly until_ms: number }>();
  /** By base URL; these come from the configuration, which bounds their number. */
  readonly #addresses = new Map<string, Dialect | undefined>();
  readonly #probes = new Map<string, { readonly settled: Promise<void>; readonly until_ms: number }>();
  readonly #stored: StoredCapabilities | undefined;

  constructor(time: Time, stored?: StoredCapabilities) {
    this.#time = time;
    this.#stored = stored;
  }

  /** Resolves once it is known whether another process has learnt anything about prefill, where that is not known here. */
  async consult(upstream: string, model: string): Promise<void> {
    const subject = { upstream, model };
    if (this.#stored && this.#recall(subject).prefill === undefined)
      await this.#stored.find(subject, (found, for_ms) => this.#adopt(subject, found, for_ms));
  }

  /**
   * Has `ask` find out about prefill, and remembers that. Of several callers for one model only the first one asks, and what
   * could not be found out is not asked for again for a while. Never rejects.
   */
  probe(upstream: string, model: string, ask: () => Promise<PrefillManner | undefined>): Promise<void> {
    const key = keyOf({ upstream, model });
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

  /** `undefined` while nothing is known. */
  prefill(upstream: string, model: string): PrefillManner | undefined {
    return this.#recall({ upstream, model }).prefill;
  }

  rememberPrefill(upstream: string, model: string, prefill: PrefillManner): void {
    const subject = { upstream, model };
    this.#learn(subject, { ...this.#recall(subject), prefill });
  }

  /** Whether answers are kept in a way that can be ended; `undefined` while nothing is known. */
  keeps(upstream: string, model: string): boolean | undefined {
    return this.#recall({ upstream, model }).keeps;
  }

  rememberKeeping(upstream: string, model: string, keeps: boolean): void {
    const subject = { upstream, model };
    this.#learn(subject, { ...this.#recall(subject), keeps });
  }

  /**
   * The configured dialect, else that of the address, else what was learnt; `undefined` while nothing is known.
   * `model` may be the name that the client uses.
   */
  dialect(target: Target, model: string): Dialect | undefined {
    return this.#given(target) ?? this.#recall(subjectOf(target, model)).dialect;
  }

  /** Learns the dialect of a target that nothing is known of, if the traces of its stream say anything. */
  recognise(target: Target, model: string, traces: Samples): void {
    if (this.dialect(target, model)) return;
    const dialect = dialectBehind(traces);
    // What came of asking without the dialect's own fields says nothing about asking with them.
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
    const key = keyOf(subject);
    const entry = this.#entries.get(key);
    if (!entry || entry.until_ms > this.#time.now()) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  #learn(subject: Subject, learnt: Capabilities): void {
    this.#set(subject, learnt, this.#time.now() + REMEMBERED_FOR_MS);
    this.#stored?.keep(subject, () => this.#known(subject) ?? learnt);
  }

  /** Takes what another process has learnt. */
  #adopt(subject: Subject, found: Capabilities, for_ms: number): void {
    const known = this.#known(subject);
    const until_ms = this.#time.now() + for_ms;
    // Learning it from the store does not extend its time.
    if (known) this.#set(subject, merged(known, found), Math.min(known.until_ms, until_ms));
    else this.#set(subject, found, until_ms);
  }

  #set(subject: Subject, { prefill, keeps, dialect }: Capabilities, until_ms: number): void {
    remember(this.#entries, keyOf(subject), { prefill, keeps, dialect, until_ms }, ENTRIES_MAX);
  }
}

/** Combines two findings about the same model, where both hold: what was found here comes first. */
export function merged(here: Capabilities, elsewhere: Capabilities): Capabilities {
  if (here.dialect === elsewhere.dialect)
    return {
      prefill: here.prefill ?? elsewhere.prefill,
      keeps: here.keeps ?? elsewhere.keeps,
      dialect: here.dialect,
    };
  // What came of asking without the dialect's own fields says nothing about asking with them.
  return here.dialect ? here : elsewhere.dialect ? elsewhere : here;
}

const subjectOf = ({ name, model: renamed }: Target, model: string): Subject => ({
  upstream: name,
  model: renamed ?? model,
});
const keyOf = ({ upstream, model }: Subject) => JSON.stringify([upstream, model]);
