import { describe, expect, test } from 'vitest';
import type { WireName } from '../../../src/checkpoint/journal.ts';
import { WIRES } from '../../../src/proxy/wires/registry.ts';
import { utterance } from '../../provider/continuation.ts';
import { usageOf } from '../../provider/events.ts';
import { expectedAnswer } from '../../provider/expected.ts';
import { limited } from '../../provider/limits.ts';
import type { CompletionRequest } from '../../provider/request.ts';
import type { Plan } from '../../provider/script.ts';
import { PROVIDER_WIRES } from '../../provider/wires/registry.ts';
import { documentOf } from './document-of.ts';

const CALL = { id: 'call_a', name: 'tides', arguments: '{"port":"Brest","days":3}' };
const OTHER = { id: 'call_b', name: 'now', arguments: '{}' };
const TEXT = { text: 'The tide comes in twice a day — “à marée haute”, 満潮 🌊 — and goes out again.' };
const THOUGHT = { reasoning: 'They ask about the sea.' };

const PLANS: Readonly<Record<string, Plan>> = {
  text: { parts: [TEXT] },
  'text in one piece': { parts: [TEXT], chunk: 'part' },
  'text that was cut by a limit': { parts: [TEXT], finish: 'length' },
  'reasoning and text': { parts: [THOUGHT, TEXT] },
  'text and a tool call': { parts: [TEXT, { tool: CALL }] },
  'a tool call': { parts: [{ tool: CALL }] },
  'two tool calls at once': { parts: [{ tools: [CALL, OTHER] }] },
  'tool calls in one piece each': { parts: [{ tools: [CALL, OTHER] }], tool_shape: 'whole' },
  'usage in the finish chunk': { parts: [TEXT], usage: 'finish_chunk' },
};
const TEXTS: ReadonlySet<string> = new Set(Object.keys(PLANS).filter((name) => !/call|reasoning/.test(name)));

const request = (plan: Plan): CompletionRequest => ({
  model: plan.model ?? 'm',
  messages: [{ role: 'user', content: 'Tell me of the tides.' }],
  stream: true,
  stream_options: { include_usage: true },
});

describe.each(Object.keys(WIRES) as WireName[])('%s', (name) => {
  const { document } = WIRES[name];
  const provider = PROVIDER_WIRES[name];
  const envelope = { id: 'chatcmpl-1', model: 'm', created: 1_700_000_000, wire: name };

  const told = (plan: Plan) => {
    const asked = request(plan);
    const said = limited(utterance(plan, { kind: 'original' }), asked);
    const usage = usageOf(asked, said.deltas);
    return {
      payloads: payloadsOf(provider.events(said, envelope, usage, plan.usage ?? 'final').events),
      whole: provider.whole(expectedAnswer(plan, asked), envelope, said),
    };
  };
  const plans = Object.entries(PLANS).filter(([plan]) => name !== 'completions' || TEXTS.has(plan));

  test.each(plans)('%s: the events come to what the provider answers without a stream', (_, plan) => {
    const { payloads, whole } = told(plan);
    expect(documentOf(WIRES[name], payloads)).toEqual(whole);
    expect(document.isAnswer(whole as Record<string, unknown>)).toBe(true);
  });

  test('without its end it is none', () => {
    const { payloads } = told({ parts: [TEXT] });
    const end = payloads.findIndex((payload) =>
      /"(finish_reason|stop_reason)":"|response.completed/.test(payload),
    );
    expect(end).toBeGreaterThan(3);
    for (let count = 0; count < end; count++)
      expect(documentOf(WIRES[name], payloads.slice(0, count))).toBeUndefined();
  });

  test('an error is no answer', () => {
    for (const body of [{ error: { message: 'no' } }, {}, { choices: [] }, { type: 'error' }])
      expect(document.isAnswer(body)).toBe(false);
  });
});

const payloadsOf = (events: readonly string[]): string[] =>
  events.flatMap((event) => /^data: (.*)$/m.exec(event)?.[1] ?? []);
