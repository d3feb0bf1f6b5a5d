import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { WireName } from '../../../src/checkpoint/journal.ts';
import type { Notice } from '../../../src/proxy/wires/common/conversation.ts';
import { WIRES } from '../../../src/proxy/wires/registry.ts';
import { itemsOf } from '../../../src/proxy/wires/responses/request.ts';
import { CASES } from '../../cases.ts';
import { PROVIDER_WIRES } from '../../provider/wires/registry.ts';

const TEXT = 'last_partial_recovery: {"told":"once"}';
const NOTICES: readonly Notice[] = [
  { place: 'instructions', text: TEXT },
  { place: 'tool_results', text: TEXT },
];

type Request = Readonly<Record<string, unknown>>;

const said = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).map((text) => `said ${text}`);
const value = fc.record({ city: fc.string(), days: fc.integer() });
const optional = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { nil: undefined });
const some = <Value>(arbitrary: fc.Arbitrary<Value>, maxLength = 3) =>
  fc.array(arbitrary, { minLength: 1, maxLength });

/** A question, the model's turn with its calls, and the client's reply, which begins with the results. */
const exchange = fc.record({
  asked: some(said),
  told: fc.array(said, { maxLength: 2 }),
  calls: fc.array(fc.record({ value, result: optional(fc.oneof(said, some(said))) }), { maxLength: 3 }),
  more: fc.array(said, { maxLength: 2 }),
});
/** `isPlain`: texts are strings wherever the API accepts strings. */
const conversation = fc.record({
  instructions: optional(fc.oneof(said, fc.constant(''), some(said))),
  exchanges: some(exchange, 4),
  last: optional(some(said)),
  isPlain: fc.boolean(),
  isCached: fc.boolean(),
});
type Conversation = typeof conversation extends fc.Arbitrary<infer Value> ? Value : never;

const idOf = (turn: number, call: number): string => `call_${turn}_${call}`;

function chatRequest({ instructions, exchanges, last, isPlain }: Conversation): Request {
  const contentOf = (texts: readonly string[]) =>
    isPlain ? texts.join('\n') : texts.map((text) => ({ type: 'text', text }));
  const system = typeof instructions === 'string' ? [instructions] : (instructions ?? []);
  return {
    model: 'm',
    messages: [
      ...system.map((content) => ({ role: isPlain ? 'system' : 'developer', content })),
      ...exchanges.flatMap(({ asked, told, calls, more }, turn) => [
        { role: 'user', content: contentOf(asked) },
        {
          role: 'assistant',
          content: told.join('\n'),
          tool_calls: calls.map(({ value: input }, call) => ({
            id: idOf(turn, call),
            type: 'function',
            function: { name: 'forecast', arguments: JSON.stringify(input) },
          })),
        },
        ...calls.map(({ result = '' }, call) => ({
          role: 'tool',
          tool_call_id: idOf(turn, call),
          content: typeof result === 'string' ? result : contentOf(result),
        })),
        ...more.map((content) => ({ role: 'user', content })),
      ]),
      ...(last ? [{ role: 'user', content: contentOf(last) }] : []),
    ],
    temperature: 0.5,
  };
}

function messagesRequest({ instructions, exchanges, last, isPlain, isCached }: Conversation): Request {
  const cache = isCached ? { cache_control: { type: 'ephemeral' } } : {};
  const blocksOf = (texts: readonly string[]) => texts.map((text) => ({ type: 'text', text }));
  const contentOf = (texts: readonly string[]) => (isPlain ? texts.join('\n') : blocksOf(texts));
  const system =
    typeof instructions === 'string'
      ? instructions
      : instructions?.map((text, index) => ({ type: 'text', text, ...(index === 0 && cache) }));
  return {
    model: 'm',
    max_tokens: 100,
    ...(system !== undefined && { system }),
    messages: [
      ...exchanges.flatMap(({ asked, told, calls, more }, turn) => [
        { role: 'user', content: contentOf(asked) },
        {
          role: 'assistant',
          content: [
            ...blocksOf(told.length + calls.length === 0 ? ['Yes.'] : told),
            ...calls.map(({ value: input }, call) => ({
              type: 'tool_use',
              id: idOf(turn, call),
              name: 'forecast',
              input,
            })),
          ],
        },
        ...(calls.length === 0
          ? []
          : [
              {
                role: 'user',
                content: [
                  ...calls.map(({ result }, call) => ({
                    type: 'tool_result',
                    tool_use_id: idOf(turn, call),
                    ...(result !== undefined && {
                      content: typeof result === 'string' ? result : blocksOf(result),
                    }),
                  })),
                  ...blocksOf(more),
                ],
              },
            ]),
      ]),
      { role: 'user', content: contentOf(last ?? ['And now?']) },
    ],
    metadata: {},
  };
}

function responsesRequest({ instructions, exchanges, last, isPlain, isCached }: Conversation): Request {
  const partsOf = (texts: readonly string[]) => texts.map((text) => ({ type: 'input_text', text }));
  const contentOf = (texts: readonly string[]) => (isPlain ? texts.join('\n') : partsOf(texts));
  const items = [
    ...(Array.isArray(instructions)
      ? instructions.map((content) => ({ role: isCached ? 'developer' : 'system', content }))
      : []),
    ...exchanges.flatMap(({ asked, told, calls, more }, turn) => [
      { role: 'user', content: contentOf(asked) },
      ...told.map((text) => ({
        type: 'message',
        role: 'assistant',
        content: [{ type: 'output_text', text, annotations: [] }],
      })),
      ...calls.map(({ value: input }, call) => ({
        type: 'function_call',
        call_id: idOf(turn, call),
        name: 'forecast',
        arguments: JSON.stringify(input),
      })),
      ...calls.map(({ result = '' }, call) => ({
        type: 'function_call_output',
        call_id: idOf(turn, call),
        output: typeof result === 'string' ? result : partsOf(result),
      })),
      ...more.map((content) => ({ type: 'message', role: 'user', content })),
    ]),
    ...(last ? [{ role: 'user', content: contentOf(last) }] : []),
  ];
  const given = typeof instructions === 'string' ? { instructions } : {};
  const [first] = exchanges;
  // The result of a call that only the provider knows.
  if (isCached && isPlain && !last) {
    const output = { type: 'function_call_output', call_id: 'call_kept', output: 'rain' };
    return { model: 'm', previous_response_id: 'resp_1', ...given, input: [output] };
  }
  if (isPlain && last) return { model: 'm', ...given, input: first?.asked.join('\n') ?? '', store: false };
  return { model: 'm', ...given, input: items, store: false };
}

const REQUESTS: Partial<Record<WireName, (conversation: Conversation) => Request>> = {
  chat_completions: chatRequest,
  messages: messagesRequest,
  responses: responsesRequest,
};

/** Whether `after` is `before` with one insertion. */
function isInsertion(before: string, after: string): boolean {
  let start = 0;
  while (start < before.length && before[start] === after[start]) start++;
  const rest = before.length - start;
  return after.length > before.length && (rest === 0 || after.endsWith(before.slice(start)));
}

/** Turns a text that stands for an item into that item, if `like` has items. */
const spelledOut = (request: Request, like: Request): Request =>
  Array.isArray(like.input) ? { ...request, input: itemsOf(request) } : request;

const timesIn = (text: string): number => text.split(JSON.stringify(TEXT).slice(1, -1)).length - 1;

describe.each(Object.keys(REQUESTS) as WireName[])('a request on %s', (wire) => {
  const { notices } = WIRES[wire];
  const requestOf = REQUESTS[wire];
  if (!notices || !requestOf) throw new Error(`${wire} takes no notices`);
  const check = (request: Request) => PROVIDER_WIRES[wire].request({ ...request });
  const form = fc.constantFrom('added' as const, 'joined' as const);

  test('with a notice is what it was, with the notice in one place', () => {
    fc.assert(
      fc.property(conversation, form, fc.constantFrom(...NOTICES), (said_so_far, as, notice) => {
        const request = requestOf(said_so_far);
        const before = JSON.stringify(request);
        expect(check(request)).not.toBeNull();
        const hasPlace = notice.place === 'instructions' || /tool_result|"tool"|_output/.test(before);
        fc.pre(hasPlace);
        const told = notices.withNotice(request, notice, as);
        expect(JSON.stringify(request)).toBe(before);
        expect(check(told)).not.toBeNull();
        const after = JSON.stringify(told);
        expect(timesIn(after)).toBe(1);
        expect([JSON.stringify(spelledOut(request, told)), after]).toSatisfy(([one, other]: string[]) =>
          isInsertion(one ?? '', other ?? ''),
        );
      }),
      { numRuns: CASES },
    );
  });

  test('with all notices is one that its provider takes', () => {
    fc.assert(
      fc.property(conversation, form, (said_so_far, as) => {
        let told = requestOf(said_so_far);
        const hasResults = /tool_result|"tool"|_output/.test(JSON.stringify(told));
        const all = hasResults ? NOTICES : NOTICES.slice(0, 1);
        for (const notice of all) told = notices.withNotice(told, notice, as);
        expect(check(told)).not.toBeNull();
        expect(timesIn(JSON.stringify(told))).toBe(all.length);
      }),
      { numRuns: CASES },
    );
  });
});
