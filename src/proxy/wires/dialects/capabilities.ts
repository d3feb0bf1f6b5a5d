import { isObject, parsedJson } from '../../../lib/json.ts';
import type { PrefillManner } from '../../../plans/seam/mode.ts';
import type { Dialect } from '../common/dialect.ts';
import { DIALECTS } from './registry.ts';

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

/** Another form of the record gets another number: replicas of several versions may share a store. */
const VERSION = 1;
const MANNERS: ReadonlySet<unknown> = new Set<PrefillManner>(['exact', 'echo', 'new_turn']);

/** A record of capabilities, for the notes of a store. `learnt_at_ms`: time of day. */
export function encodeCapabilities({ prefill, keeps, dialect }: Capabilities, learnt_at_ms: number): string {
  return JSON.stringify({ version: VERSION, learnt_at_ms, prefill, keeps, dialect: dialect?.name });
}

/** `undefined` for what is no such record, or has anything in it that is not known here: half of it may mislead. */
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

/** What comes of two findings about the same model, where both hold: what was found here comes first. */
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
