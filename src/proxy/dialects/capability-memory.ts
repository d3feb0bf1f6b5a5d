import type { Time } from '../../time.ts';
import type { Target } from '../run.ts';
import type { Dialect } from './dialect.ts';
import { dialectAt, dialectBehind } from './recognition.ts';
import { DIALECTS } from './registry.ts';
import type { Traces } from './sign.ts';

/** Long enough to spare a day's recoveries the probe, short enough to notice a provider's upgrade. */
const REMEMBERED_FOR_MS = 24 * 60 * 60 * 1000;
/** Models are named by clients, so the table must not grow with them. */
const ENTRIES_MAX = 10_000;

/** What was learnt about one model of an upstream; `undefined` is what is not known. */
interface Capabilities {
  readonly prefill: boolean | undefined;
  readonly keeps: boolean | undefined;
  readonly dialect: Dialect | undefined;
}

const NOTHING: Capabilities = { prefill: undefined, keeps: undefined, dialect: undefined };

/**
 * What was learnt about assistant prefill, about answers that are kept, and about the servers behind addresses that say nothing. Per upstream and
 * model: a gateway has another server behind each.
 */
export class CapabilityMemory {
  readonly #time: Time;
  readonly #entries = new Map<string, Capabilities & { readonly until_ms: number }>();
  /** By base URL; these come from the configuration, which bounds their number. */
  readonly #addresses = new Map<string, Dialect | undefined>();

  constructor(time: Time) {
    this.#time = time;
  }

  /** `undefined` while nothing is known. */
  prefill(upstream: string, model: string): boolean | undefined {
    return this.#recall(keyOf(upstream, model)).prefill;
  }

  rememberPrefill(upstream: string, model: string, prefill: boolean): void {
    const key = keyOf(upstream, model);
    this.#learn(key, { ...this.#recall(key), prefill });
  }

  /** Whether answers are kept in a way that can be ended; `undefined` while nothing is known. */
  keeps(upstream: string, model: string): boolean | undefined {
    return this.#recall(keyOf(upstream, model)).keeps;
  }

  rememberKeeping(upstream: string, model: string, keeps: boolean): void {
    const key = keyOf(upstream, model);
    this.#learn(key, { ...this.#recall(key), keeps });
  }

  /**
   * The configured dialect, else that of the address, else what was learnt; `undefined` while nothing is known.
   * `model` may be the name that the client uses.
   */
  dialect(target: Target, model: string): Dialect | undefined {
    return this.#given(target) ?? this.#recall(keyOf(target.name, target.model ?? model)).dialect;
  }

  /** Learns the dialect of a target that nothing is known of, if the traces of its stream say anything. */
  recognise(target: Target, model: string, traces: Traces): void {
    if (this.dialect(target, model)) return;
    const dialect = dialectBehind(traces);
    // What came of asking without the dialect's own fields says nothing about asking with them.
    if (dialect) this.#learn(keyOf(target.name, target.model ?? model), { ...NOTHING, dialect });
  }

  #given({ upstream: { base_url, dialect } }: Target): Dialect | undefined {
    if (dialect !== undefined) return DIALECTS[dialect];
    if (!this.#addresses.has(base_url)) this.#addresses.set(base_url, dialectAt(base_url));
    return this.#addresses.get(base_url);
  }

  #recall(key: string): Capabilities {
    const entry = this.#entries.get(key);
    if (!entry) return NOTHING;
    if (entry.until_ms > this.#time.now()) return entry;
    this.#entries.delete(key);
    return NOTHING;
  }

  #learn(key: string, { prefill, keeps, dialect }: Capabilities): void {
    // What is learnt anew is the youngest again.
    this.#entries.delete(key);
    const oldest = this.#entries.keys().next();
    if (this.#entries.size >= ENTRIES_MAX && !oldest.done) this.#entries.delete(oldest.value);
    this.#entries.set(key, { prefill, keeps, dialect, until_ms: this.#time.now() + REMEMBERED_FOR_MS });
  }
}

const keyOf = (upstream: string, model: string) => JSON.stringify([upstream, model]);
