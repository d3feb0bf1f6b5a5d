import { tailOf } from '../lib/text.ts';
import type { SettledCall } from './tool-call.ts';
import type { ProviderTool } from './transcript.ts';

/**
 * How a run ended on this replica; the `outcome` label of `holdfast_runs_total`.
 * `superseded`: another replica took it over, or may have, since the store did not confirm the lease. `handed_over`:
 * this replica shut down and released it. `replayed`: the whole answer was in the store.
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

/** The content of an answer that was cut off, without tool calls, which are never partial. */
export interface Said {
  readonly text: string;
  readonly refusal: string;
  readonly reasoning: string;
  readonly providerTools: readonly unknown[];
}

/** Whether the client has anything to see; without content there is no partial answer. */
export const isPartial = ({ text, refusal, reasoning, providerTools }: Said): boolean =>
  text !== '' || refusal !== '' || reasoning !== '' || providerTools.length > 0;

/** The content and calls of a run when it ended. */
export interface PartialAnswer {
  readonly reasoning: string;
  readonly text: string;
  readonly refusal: string;
  readonly calls: readonly SettledCall[];
  readonly providerTools: readonly ProviderTool[];
}

/**
 * The answer as a list of typed parts. `characters_max`: longer texts keep only their end, and longer tool results are
 * left out.
 */
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

/**
 * `result` is `unknown` for a tool that was still running: it may have taken effect. `items`: in the provider's own
 * form.
 */
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
