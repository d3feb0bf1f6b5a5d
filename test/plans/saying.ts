import type { Delta, Proof } from '../../src/plans/delta.ts';
import { Transcript } from '../../src/plans/transcript.ts';

/** Shorthands for deltas. `call`: a tool call, as far as it arrived. */
export const text = (said: string): Delta => ({ kind: 'text', text: said });
export const refusal = (said: string): Delta => ({ kind: 'refusal', text: said });
export const reasoning = (thought: string): Delta => ({ kind: 'reasoning', text: thought });
export const close = (index: number, proof: Proof = 3): Delta => ({ kind: 'tool_close', index, proof });
export const cancel = (index: number): Delta => ({ kind: 'tool_cancel', index });
export const start = (index: number, name: string): Delta => ({
  kind: 'tool_start',
  index,
  id: `call_${index}`,
  name,
});
export const call = (index: number, name: string, ...fragments: string[]): Delta[] => [
  start(index, name),
  ...fragments.map((fragment): Delta => ({ kind: 'tool_arguments', index, text: fragment })),
];

export const running = (id: string, name = 'create_ticket'): Delta => ({
  kind: 'provider_tool_start',
  id,
  name,
});
export const ran = (id: string, name = 'create_ticket'): Delta[] => [
  running(id, name),
  { kind: 'provider_tool_end', id, name, items: [{ type: 'mcp_call', id, name, output: 'ticket 7' }] },
];

export const transcriptOf = (...said: (Delta | readonly Delta[])[]): Transcript => Transcript.of(said.flat());

/** The tools of all these tests: one with a required argument, and one without arguments. */
export const SCHEMAS = new Map<string, unknown>([
  [
    'weather',
    {
      type: 'object',
      properties: { city: { type: 'string' }, days: { type: 'integer' } },
      required: ['city'],
    },
  ],
  ['now', { type: 'object', properties: {} }],
]);
