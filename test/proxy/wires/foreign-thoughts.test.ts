import { describe, expect, test } from 'vitest';
import type { Transport } from '../../../src/proxy/upstream/transport.ts';
import { CapabilityMemory } from '../../../src/proxy/wires/dialects/capability-memory.ts';
import type { Fault } from '../../provider/fault.ts';
import type { Plan } from '../../provider/script.ts';
import { type SimulationOptions, simulate, upstreamAt } from '../../simulation/simulate.ts';

const TEXT = 'Kelp grips the rock through the surge and does not let go.';

/** Error messages of providers, as reported in the issues of coding agents. */
const INVALID_SIGNATURE = 'messages.1.content.0: Invalid `signature` in `thinking` block';
const MODIFIED =
  'messages.3.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.';
const UNVERIFIED =
  'The encrypted content gAAA...Rg== could not be verified. Reason: Encrypted content could not be decrypted or parsed.';
const NOT_FOUND =
  "Item with id 'rs_05be' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.";

const refuses = (message: string, status = 400): Fault => ({
  kind: 'status',
  status,
  body: { type: 'error', error: { type: 'invalid_request_error', message } },
});
const says = (...faults: readonly (Fault | null)[]): Plan => ({ parts: [{ text: TEXT }], faults });

type Body = Readonly<Record<string, unknown>>;

/** One run, and the requests to each upstream. */
async function ask(
  plan: Plan,
  wire: 'messages' | 'responses',
  messages: unknown,
  more: SimulationOptions = {},
) {
  const asked: { readonly upstream: string; readonly body: Body }[] = [];
  const around = (transport: Transport): Transport => ({
    open(request) {
      asked.push({ upstream: upstreamAt(request.url), body: JSON.parse(String(request.body)) as Body });
      return transport.open(request);
    },
    close: () => transport.close(),
  });
  const request = { ...more.request, messages } as SimulationOptions['request'];
  const run = await simulate(plan, { ...more, wire, ...(request && { request }), around });
  return { ...run, asked };
}

const thought = { type: 'thinking', thinking: 'It is about kelp.', signature: 'c2VhbGVk' };
const sealed = { type: 'redacted_thinking', data: 'c2VhbGVk' };
const said = { type: 'text', text: 'Yes?' };
const call = { type: 'tool_use', id: 'toolu_1', name: 'forecast', input: {} };
const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'Rain.' };
const user = (content: unknown) => ({ role: 'user', content });
const assistant = (...content: readonly object[]) => ({ role: 'assistant', content });

describe('a message', () => {
  const history = [user('Hello.'), assistant(thought, sealed, said), user('Tell me.')];
  const thinks = { thinking: { type: 'adaptive' } } as SimulationOptions['request'];

  test.each([INVALID_SIGNATURE, MODIFIED])(
    'is asked for without what its provider refuses: %s',
    async (words) => {
      const { asked, stream, outcome, elapsed_ms } = await ask(says(refuses(words)), 'messages', history, {
        ...(thinks && { request: thinks }),
      });

      expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
      expect({ outcome, elapsed_ms }).toEqual({ outcome: 'recovered', elapsed_ms: 0 });
      const [first, second] = asked.map(({ body }) => body);
      expect(first?.messages).toEqual(history);
      expect(second).toEqual({ ...first, messages: [user('Hello.'), assistant(said), user('Tell me.')] });
    },
  );

  test('that goes on after a tool is asked for without thinking', async () => {
    const { asked, stream } = await ask(
      says(refuses(INVALID_SIGNATURE)),
      'messages',
      [user('Hello.'), assistant(thought, call), user([result])],
      { ...(thinks && { request: thinks }) },
    );

    expect(stream.text).toBe(TEXT);
    const [first, second] = asked.map(({ body }) => body);
    expect(second).toEqual({
      ...first,
      thinking: { type: 'disabled' },
      messages: [user('Hello.'), assistant(call), user([result])],
    });
  });

  test('of a conversation with an answer that was nothing but thoughts', async () => {
    const { asked, stream } = await ask(says(refuses(INVALID_SIGNATURE)), 'messages', [
      user('Hello.'),
      assistant(thought),
      user('Are you there?'),
    ]);

    expect(stream.text).toBe(TEXT);
    expect(asked[1]?.body.messages).toEqual([user('Hello.'), user('Are you there?')]);
  });

  test('that is refused all the same is refused to the client, in the words of the provider', async () => {
    const refusal = refuses(INVALID_SIGNATURE);
    const { asked, client } = await ask(says(refusal, refusal, refusal), 'messages', history);

    expect(asked).toHaveLength(2);
    expect(client.rejection?.status).toBe(400);
    expect(client.rejection?.body).toContain('Invalid `signature`');
  });

  test.each([
    ['without thoughts', [user('Hello.')], INVALID_SIGNATURE],
    ['for another reason', history, 'max_tokens: must be at least 1'],
  ])('that is refused %s is asked for once', async (_, messages, words) => {
    const { asked, client } = await ask(says(refuses(words)), 'messages', messages);

    expect(asked).toHaveLength(1);
    expect(client.rejection?.status).toBe(400);
  });

  test('goes with its thoughts to the target that has signed them, and without to the one that refuses them', async () => {
    const reset: Fault = { kind: 'reset', at: { event: 8 } };
    const { asked, stream } = await ask(says(reset, refuses(INVALID_SIGNATURE), reset), 'messages', history, {
      others: ['anthropic'],
      recovery: { same_target_retries: 0 },
    });

    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    const thoughts = asked.map(({ upstream, body }) => [upstream, JSON.stringify(body).includes('c2VhbGVk')]);
    expect(thoughts).toEqual([
      ['default', true],
      ['other-1', true],
      ['other-1', false],
      ['default', true],
    ]);
  });
});

/** A process that remembers what it has learnt. */
function remembering(): SimulationOptions {
  let memory: CapabilityMemory | undefined;
  return {
    capabilities: (time) => {
      memory ??= new CapabilityMemory(time);
      return memory;
    },
  };
}

describe('a later message of the conversation', () => {
  const own = { type: 'thinking', thinking: 'It rains.', signature: 'b3du' };
  const begun = [user('Hello.'), assistant(thought, sealed, said), user('Tell me.')];
  const next = [...begun, assistant(own, call), user([result])];
  const thinks = { request: { thinking: { type: 'adaptive' } } as SimulationOptions['request'] };

  /** Asks after the conversation `begun` has been refused. */
  async function later(messages: unknown, plan: Plan = says(), more: SimulationOptions = {}) {
    const options = { ...thinks, ...remembering() } as SimulationOptions;
    const { asked } = await ask(says(refuses(INVALID_SIGNATURE)), 'messages', begun, options);
    expect(asked).toHaveLength(2);
    return ask(plan, 'messages', messages, { ...options, ...more });
  }

  test('is asked for at once without what was refused, and with what its provider has thought since', async () => {
    const { asked, stream } = await later(next);
    expect(stream.text).toBe(TEXT);
    expect(asked).toMatchObject([
      {
        body: {
          thinking: { type: 'adaptive' },
          messages: [user('Hello.'), assistant(said), user('Tell me.'), assistant(own, call), user([result])],
        },
      },
    ]);
  });

  test('is asked for without thinking where it goes on after a tool that rests on what was refused', async () => {
    const { asked } = await later([
      user('Hello.'),
      assistant(thought, call),
      user([result]),
      assistant(own, call),
      user([result]),
    ]);
    expect(asked).toMatchObject([
      {
        body: {
          thinking: { type: 'disabled' },
          messages: [user('Hello.'), assistant(call), user([result]), assistant(own, call), user([result])],
        },
      },
    ]);
  });

  test('goes with all of its thoughts to another upstream', async () => {
    const reset: Fault = { kind: 'reset', at: { event: 8 } };
    const { asked, stream } = await later(next, says(reset), {
      others: ['anthropic'],
      recovery: { same_target_retries: 0 },
    });
    expect(stream.text).toBe(TEXT);
    const thoughts = asked.map(({ upstream, body }) => [upstream, JSON.stringify(body).includes('c2VhbGVk')]);
    expect(thoughts).toEqual([
      ['default', false],
      ['other-1', true],
    ]);
  });

  test('that is refused for another thought is asked for without any', async () => {
    const { asked, stream } = await later(next, says(refuses(INVALID_SIGNATURE)));
    expect(stream.text).toBe(TEXT);
    expect(asked.map(({ body }) => JSON.stringify(body).includes('b3du'))).toEqual([true, false]);
  });

  test('that is refused without any thoughts left is not asked for again', async () => {
    const { asked, client } = await later(begun, says(refuses(INVALID_SIGNATURE)));
    expect(asked).toHaveLength(1);
    expect(client.rejection?.status).toBe(400);
  });
});

describe('a response', () => {
  const reasoning = { type: 'reasoning', id: 'rs_05be', summary: [], encrypted_content: 'gAAA' };
  const message = (more: object = {}) => ({ type: 'message', role: 'assistant', content: 'Yes?', ...more });
  const made = (more: object = {}) => ({
    type: 'function_call',
    call_id: 'call_1',
    name: 'forecast',
    arguments: '{}',
    ...more,
  });
  const rest = [
    { type: 'function_call_output', call_id: 'call_1', output: 'Rain.' },
    { type: 'item_reference', id: 'msg_2' },
    user('Tell me.'),
  ];
  const history = [
    user('Hello.'),
    reasoning,
    message({ id: 'msg_1' }),
    reasoning,
    made({ id: 'fc_1' }),
    ...rest,
  ];

  test.each([
    [UNVERIFIED, 400],
    [NOT_FOUND, 404],
  ])('is asked for without what its provider refuses: %s', async (words, status) => {
    const { asked, stream } = await ask(says(refuses(words, status)), 'responses', history);

    expect(stream).toMatchObject({ text: TEXT, done: true, violations: [] });
    const [first, second] = asked.map(({ body }) => body);
    expect(first?.input).toEqual(history);
    // The provider would look up an item with an id together with its thoughts.
    expect(second).toEqual({ ...first, input: [user('Hello.'), message(), made(), ...rest] });
  });

  test('that is refused all the same is refused to the client', async () => {
    const refusal = refuses(UNVERIFIED);
    const { asked, client } = await ask(says(refusal, refusal, refusal), 'responses', history);

    expect(asked).toHaveLength(2);
    expect(client.rejection?.status).toBe(400);
  });

  test('is asked for at once without what was refused before, and with what the provider has thought since', async () => {
    const own = { type: 'reasoning', id: 'rs_own', summary: [], encrypted_content: 'gBBB' };
    const since = [own, message({ id: 'msg_own' }), user('Go on.')];
    const process = remembering();
    await ask(says(refuses(UNVERIFIED)), 'responses', history, process);
    const { asked, stream } = await ask(says(), 'responses', [...history, ...since], process);

    expect(stream.text).toBe(TEXT);
    expect(asked.map(({ body }) => body.input)).toEqual([
      [user('Hello.'), message(), made(), ...rest, ...since],
    ]);
  });
});
