import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { omissionOf } from '../../../../src/proxy/run/compression/omission.ts';
import type { WireRequest } from '../../../../src/proxy/wires/common/wire.ts';
import { WIRES } from '../../../../src/proxy/wires/registry.ts';
import { CASES, seedOr } from '../../../cases.ts';
import { checkConversation } from '../../../provider/wires/messages-conversation.ts';
import { checkInput } from '../../../provider/wires/responses-input.ts';
import { expectShares } from '../../../shares.ts';

const SEED = seedOr(20_261_122);
const RUNS = { seed: SEED, numRuns: CASES };

type Message = Readonly<Record<string, unknown>>;
/**
 * The next step of a conversation: the user or the model says something, or the model makes this many calls and gets
 * the results.
 */
type Step = 'user' | 'model' | 'instructions' | number;

const steps = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom<Step>('user', 'model', 'model', 'instructions') },
      { weight: 2, arbitrary: fc.integer({ min: 1, max: 3 }) },
    ),
    { maxLength: 30 },
  )
  // The user begins. At the end the user waits for an answer, or the model continues from results.
  .map((some): readonly Step[] => ['user', ...some]);

const ids = (step: number, index: number) =>
  Array.from({ length: step }, (_, call) => `call_${index}_${call}`);
const RESULT = 'High water is at six, and at half past six in the evening. ';

const chat = (step: Step, index: number): readonly Message[] => {
  if (step === 'user') return [{ role: 'user', content: `Question ${index}` }];
  if (step === 'model') return [{ role: 'assistant', content: `Answer ${index}` }];
  if (step === 'instructions') return [{ role: 'system', content: `Rule ${index}` }];
  const calls = ids(step, index);
  const tool_calls = calls.map((id) => ({
    id,
    type: 'function',
    function: { name: 'tides', arguments: '{}' },
  }));
  return [
    { role: 'assistant', content: null, tool_calls },
    ...calls.map((id) => ({ role: 'tool', tool_call_id: id, content: RESULT })),
  ];
};

const messages = (step: Step, index: number): readonly Message[] => {
  if (step === 'user') return [{ role: 'user', content: `Question ${index}` }];
  if (typeof step === 'string') return [{ role: 'assistant', content: `Answer ${index}` }];
  const calls = ids(step, index);
  return [
    { role: 'assistant', content: calls.map((id) => ({ type: 'tool_use', id, name: 'tides', input: {} })) },
    { role: 'user', content: calls.map((id) => ({ type: 'tool_result', tool_use_id: id, content: RESULT })) },
  ];
};

const responses = (step: Step, index: number): readonly Message[] => {
  const reasoning = { type: 'reasoning', id: `rs_${index}`, summary: [] };
  if (step === 'user') return [{ role: 'user', content: `Question ${index}` }];
  if (step === 'instructions') return [{ type: 'message', role: 'developer', content: `Rule ${index}` }];
  if (step === 'model')
    return [
      reasoning,
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'So.' }] },
    ];
  const calls = ids(step, index);
  return [
    reasoning,
    ...calls.map((call_id) => ({ type: 'function_call', call_id, name: 'tides', arguments: '{}' })),
    ...calls.map((call_id) => ({ type: 'function_call_output', call_id, output: RESULT })),
  ];
};

/** Every call is followed directly by its results, and every result has a call. */
function checkChat(said: readonly Message[], complain: (what: string) => never): void {
  let open: unknown[] = [];
  for (const { role, tool_calls, tool_call_id } of said) {
    if (role === 'tool' && !open.includes(tool_call_id)) complain(`no call ${tool_call_id}`);
    if (role !== 'tool' && open.length > 0) complain(`no results of ${open.join()}`);
    open = open.filter((id) => id !== tool_call_id);
    if (Array.isArray(tool_calls)) open = tool_calls.map(({ id }: { id: unknown }) => id);
  }
}

/** The API refuses reasoning without what it led to, and vice versa. */
function checkReasoning(said: readonly Message[], complain: (what: string) => never): void {
  for (const [index, { type, role }] of said.entries()) {
    const next = said[index + 1];
    if (type === 'reasoning' && (next === undefined || next.role === 'user')) complain('reasoning alone');
    const isModels = type === 'function_call' || role === 'assistant';
    const before = said[index - 1]?.type;
    if (isModels && before !== 'reasoning' && before !== 'function_call') complain('no reasoning before it');
  }
}

const complain = (what: string): never => {
  throw new Error(what);
};

const ON_WIRES = {
  chat_completions: {
    say: chat,
    request: (said: readonly Message[]) => ({ messages: said }),
    check: (said: readonly Message[]) => checkChat(said, complain),
  },
  messages: {
    say: messages,
    request: (said: readonly Message[]) => ({ messages: said }),
    check: (said: readonly Message[]) => checkConversation({ messages: said }),
  },
  responses: {
    say: responses,
    request: (said: readonly Message[]) => ({ input: said }),
    check: (said: readonly Message[]) => {
      checkInput({ input: said });
      checkReasoning(said, complain);
    },
  },
} as const;

describe.each(Object.entries(ON_WIRES))('any conversation on %s', (name, { say, request, check }) => {
  const { conversation } = WIRES[name as keyof typeof ON_WIRES];
  if (!conversation) throw new Error('there is none');

  it(`is one as before with a summary in it (${RUNS.numRuns} cases, seed ${SEED})`, () => {
    let omitted = 0;
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 12 }), (taken, keep) => {
        const before = taken.flatMap((step, index) => say(step, index));
        check(before);
        const asked = { model: 'model', stream: true, ...request(before) } as WireRequest;
        const omission = omissionOf(conversation, asked, keep);
        if (!omission) return;
        omitted++;
        const after = omission.withSummary('A summary.') as readonly Message[];
        check(after);
        // The messages that are kept, which include the end, are unchanged and in their order.
        const added = after.filter((message) => !before.includes(message));
        expect(added).toHaveLength(1);
        expect(JSON.stringify(added)).toContain('A summary.');
        const kept = after.filter((message) => message !== added[0]);
        expect(kept).toEqual(before.filter((message) => kept.includes(message)));
        expect(kept.slice(-keep)).toEqual(before.slice(-keep));
        const isPinned = ({ role }: Message) => role === 'system' || role === 'developer';
        expect(kept.filter(isPinned)).toEqual(before.filter(isPinned));
        expect(after.length).toBeLessThanOrEqual(before.length);
        // The summary is a message of the user, and roles still alternate around it if they did before.
        expect(added[0]?.role).toBe('user');
        const left_out = before.filter((message) => !kept.includes(message) && message !== omission.joined);
        expect(left_out.length).toBeGreaterThan(0);
        // The summarising model gets everything that is left out, except for thoughts.
        const told = omission.sayings.map(({ text }) => text).join('\n');
        for (const message of left_out)
          if (message.role === 'user' && typeof message.content === 'string')
            expect(told).toContain(message.content);

        // A summary can be summarised, too.
        const again = omissionOf(conversation, omission.requestWith(after), keep);
        if (again) check(again.withSummary('Short.') as readonly Message[]);
      }),
      RUNS,
    );
    expectShares({ omitted }, RUNS.numRuns, { omitted: 2 / 5 });
  });
});
