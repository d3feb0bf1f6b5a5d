import { tailOf } from '../lib/text.ts';
import type { SettledCall } from './tool-call.ts';
import type { ProviderTool } from './transcript.ts';

/**
 * How a run ended here; the `outcome` label of `holdfast_runs_total`. `superseded`: another replica took it over, or may
 * have: the store did not confirm that it was still held here.
 * `handed_over`: this one shut down and let it go. `replayed`: all of it was in the store.
 */
export const OUTCOMES = [
  'complete',
  'recovered',
  'salvaged',
  'failed',
  'rejected',
  'cancelled',
  'superseded',
  'handed_over',
  'replayed',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** What an answer that was cut off is made of, besides tool calls, which are whole or nothing. */
export interface Said {
  readonly text: string;
  readonly refusal: string;
  readonly reasoning: string;
  readonly providerTools: readonly unknown[];
}

/** Whether there is anything of the answer for its client to see: otherwise what was cut off is no partial. */
export const isPartial = ({ text, refusal, reasoning, providerTools }: Said): boolean =>
  text !== '' || refusal !== '' || reasoning !== '' || providerTools.length > 0;

/** What a run had said and done when it ended. */
export interface PartialAnswer {
  readonly reasoning: string;
  readonly text: string;
  readonly refusal: string;
  readonly calls: readonly SettledCall[];
  readonly providerTools: readonly ProviderTool[];
}

/** The same by kind. `characters_max`: of each text only the end is kept, and a longer result of a tool is left out. */
export function partsOf(answer: PartialAnswer, characters_max = Number.POSITIVE_INFINITY): readonly object[] {
  const { reasoning, text, refusal, calls, providerTools } = answer;
  const said = Object.entries({ reasoning, text, refusal }).filter(([, whole]) => whole !== '');
  return [
    ...said.map(([type, whole]) => ({
      type,
      text: whole.length > characters_max ? tailOf(whole, characters_max) : whole,
      ...(whole.length > characters_max && { truncated: true }),
    })),
    ...calls.map(({ id, name, arguments: json }) => ({ type: 'tool_call', id, name, arguments: json })),
    ...providerTools.map((tool) => providerToolPart(tool, characters_max)),
  ];
}

/** `result` of a tool that was running: it may have had its effect. `items`: in the provider's own form. */
function providerToolPart({ id, name, state, items }: ProviderTool, characters_max: number): object {
  const result = state === 'running' ? 'unknown' : 'settled';
  const isTooLong = items.length > 0 && JSON.stringify(items).length > characters_max;
  return {
    type: 'provider_tool',
    id,
    name,
    result,
    items: isTooLong ? [] : items,
    ...(isTooLong && { truncated: true }),
  };
}
