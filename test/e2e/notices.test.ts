import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { WireName } from '../../src/checkpoint/journal.ts';
import { lostCallText } from '../../src/proxy/run/notices/lost-calls.ts';
import { cutInCall } from '../provider/cut-in-call.ts';
import type { Fault } from '../provider/fault.ts';
import type { Part, Plan } from '../provider/script.ts';
import { API_KEY } from './clients/chat-client.ts';
import { responsesTools } from './clients/openai-responses.ts';
import { aiTurns, anthropicTurns, BE_BRIEF, openaiTurns, type TwoTurns } from './clients/two-turns.ts';
import { Deployment, modelOf } from './deployment.ts';
import type { HoldfastProcess } from './holdfast-process.ts';
import { post, streamRequest } from './raw-client.ts';
import { callTo, TIDES } from './situations.ts';

/** Short enough for a test, long enough for a busy machine to renew it. */
const LEASE_MS = 1500;
const SALVAGE_AFTER_MS = 500;
const STORED_MS = 60_000;
const PIECES_BEFORE_DEATH = 20;

const CALLED: readonly Part[] = [
  { text: 'I look.' },
  { tool: callTo('call_brest', 'Brest') },
  { tool: callTo('call_lorient', 'Lorient') },
];
const HINT = lostCallText([TIDES.name]);
const words = (count: number) => Array.from({ length: count }, (_, index) => `w${index} 🌊`).join(' ');
/** Outlives every process here. */
const ENDLESS: Plan = { parts: [{ text: words(5000) }], delay_ms: 4 };
const SHORT: Plan = { parts: [{ text: 'The tide is out.' }] };
const SDKS: readonly TwoTurns[] = [true, false].flatMap((streams) => [
  anthropicTurns(streams),
  openaiTurns(streams),
  aiTurns(streams),
]);

type Body = Readonly<Record<string, unknown>>;
const bodiesOf = (deployment: Deployment, question: string): Body[] =>
  deployment.requests(question).map(({ body }) => body as Body);

/** The request as its provider should get it, with the hint about a lost call. */
function withHint(wire: WireName, body: Body): Body {
  if (wire === 'responses')
    return {
      ...body,
      input: [...(body.input as object[]), { type: 'message', role: 'user', content: HINT }],
    };
  const messages = body.messages as { content: object[] }[];
  const last = messages.at(-1);
  if (!last) throw new Error('there are no messages');
  const content = [...last.content, { type: 'text', text: HINT }];
  return { ...body, messages: messages.with(-1, { ...last, content }) };
}

function isNotice(text: unknown): boolean {
  const [, json = '{}'] =
    /^last_partial_recovery: (\{.*\}) Your previous answer .*\.$/.exec(String(text)) ?? [];
  const { status, partial_tail } = JSON.parse(json) as { status?: string; partial_tail?: string };
  return status === 'recovered_from_partial' && !!partial_tail && words(5000).includes(partial_tail);
}
const NOTICE = expect.toSatisfy(isNotice) as unknown;

/** The user's message with the notice appended. */
const withNotice = (content: unknown): unknown =>
  Array.isArray(content)
    ? [...(content as unknown[]), { type: 'text', text: NOTICE }]
    : expect.toSatisfy((text: unknown) => {
        const [asked, told] = String(text).split('\n\n');
        return asked === content && isNotice(told);
      });

/** On each wire, what a request in the thread has as instructions and input when it carries a notice. */
const NOTICED: Readonly<Record<string, (question: string, own: Body) => object>> = {
  messages: (_, { messages }) => ({
    system: [{ type: 'text', text: BE_BRIEF, cache_control: { type: 'ephemeral' } }],
    messages: (messages as { content: unknown }[]).map((message) => ({
      ...message,
      content: withNotice(message.content),
    })),
  }),
  responses: (question) => ({
    input: [
      { type: 'message', role: 'system', content: NOTICE },
      { role: 'user', content: question },
    ],
  }),
  'responses with instructions in the input': (question) => ({
    input: [
      { role: 'system', content: BE_BRIEF },
      { type: 'message', role: 'system', content: NOTICE },
      { role: 'user', content: [{ type: 'input_text', text: question }] },
    ],
  }),
};

const noticed = ({ name, wire }: TwoTurns, question: string, own: Body): object | undefined =>
  NOTICED[name.startsWith('ai,') ? `${wire} with instructions in the input` : wire]?.(question, own);

describe('a call that was cut beside one that was delivered', () => {
  let deployment: Deployment;
  beforeAll(async () => {
    deployment = await Deployment.start({ replicas: 2 });
  }, 60_000);
  // Fails if the provider refused any request.
  afterAll(() => deployment.close());

  test.each(SDKS)('is reported once to $name', async (sdk) => {
    const question = `half called: ${sdk.name}`;
    deployment.plan(question, cutInCall(sdk.wire, 'call_lorient', CALLED));
    const { holdfast, other } = deployment;
    await sdk.useTools(question, holdfast.url, [other.url, holdfast.url, other.url]);
    const [, told, ...again] = bodiesOf(deployment, question);
    if (!told || !again[0]) throw new Error('there was no second turn');
    expect(told).toEqual(withHint(sdk.wire, again[0]));
    expect(JSON.stringify(again)).not.toContain(HINT);
    expect(again).toHaveLength(2);
  });

  test('is told by a result alone, where the provider keeps the conversation', async () => {
    const question = 'half called: kept';
    deployment.plan(question, cutInCall('responses', 'call_lorient', CALLED));
    // The hint is the first message, which selects the provider's answer.
    deployment.plan(HINT, SHORT);
    const request = { model: modelOf('h1'), tools: responsesTools([TIDES]) };
    const connect = ({ url }: HoldfastProcess) =>
      new OpenAI({ baseURL: url, apiKey: API_KEY, maxRetries: 0 });
    const { id, output } = await connect(deployment.holdfast)
      .responses.stream({ ...request, input: question })
      .finalResponse();
    const result = output
      .filter((item) => item.type === 'function_call')
      .map(({ call_id }) => ({
        type: 'function_call_output' as const,
        call_id,
        output: 'High water at noon.',
      }));
    const input = [...result, { role: 'user' as const, content: question }];
    for (const replica of [deployment.other, deployment.holdfast])
      await connect(replica).responses.create({ ...request, input, previous_response_id: id });
    expect(bodiesOf(deployment, HINT).map((body) => body.input)).toEqual([
      [...result, { type: 'message', role: 'user', content: HINT }, input.at(-1)],
    ]);
    expect(bodiesOf(deployment, question).at(-1)).toMatchObject({ input, previous_response_id: id });
  });
});

describe('an answer whose replica was killed', () => {
  let deployment: Deployment;
  let living: HoldfastProcess;
  /** Each SDK continues one thread of its own, and one of the SDK before it. */
  const THREADS = SDKS.filter(({ name }) => name.endsWith('as streams'));

  beforeAll(async () => {
    deployment = await Deployment.start({
      replicas: 2,
      checkpoint: { lease_ms: LEASE_MS, interval_ms: 50 },
      resume: { salvage_after_ms: SALVAGE_AFTER_MS },
    });
    const { holdfast: dying } = deployment;
    living = deployment.other;
    let begun = 0;
    const asked = THREADS.flatMap((sdk) =>
      ['same', 'other'].map(async (where) => {
        const question = `partial, ${where}: ${sdk.name}`;
        deployment.plan(question, ENDLESS);
        let pieces = 0;
        const onText = () => {
          if (++pieces === PIECES_BEFORE_DEATH) begun++;
        };
        await expect(sdk.say(question, dying.url, question, onText)).rejects.toThrow();
      }),
    );
    await vi.waitFor(
      async () => {
        expect(begun).toBe(asked.length);
        const appends = (await dying.metrics()).get('holdfast_checkpoint_append_seconds_count{store="file"}');
        expect(appends).toBeGreaterThanOrEqual(2 * asked.length);
      },
      { timeout: STORED_MS },
    );
    await dying.kill('SIGKILL');
    await Promise.all(asked);
    const salvaged = () => living.log.filter(({ msg }) => msg === 'run salvaged');
    while (salvaged().length < asked.length) await living.logged(() => true, living.log.length);
  }, 2 * STORED_MS);
  afterAll(() => deployment.close());

  /** Asks twice in the thread; only the first request may carry the notice. */
  async function expectTold(sdk: TwoTurns, thread: string): Promise<void> {
    const questions = [`${thread}, then`, `${thread}, and then`] as const;
    for (const question of questions) {
      deployment.plan(question, SHORT);
      await sdk.say(question, living.url, thread);
    }
    const [[told], [untold]] = questions.map((question) => bodiesOf(deployment, question)) as [
      Body[],
      Body[],
    ];
    expect(JSON.stringify(untold)).not.toContain('last_partial_recovery');
    const own = JSON.parse(JSON.stringify(untold).replaceAll(questions[1], questions[0])) as Body;
    expect(told).toEqual({ ...own, ...noticed(sdk, questions[0], own) });
  }

  test.each(THREADS)('is reported once in its thread, to $name', async (sdk) => {
    const thread = `partial, same: ${sdk.name}`;
    deployment.plan(`${thread}, elsewhere`, SHORT);
    await sdk.say(`${thread}, elsewhere`, living.url, 'another thread');
    expect(JSON.stringify(bodiesOf(deployment, `${thread}, elsewhere`))).not.toContain(
      'last_partial_recovery',
    );
    await expectTold(sdk, thread);
  });

  test.each(THREADS.map((sdk, index) => ({ sdk, next: THREADS[(index + 1) % THREADS.length] as TwoTurns })))(
    'is told once to the client that continues the thread of $sdk.name: $next.name',
    async ({ sdk, next }) => {
      await expectTold(next, `partial, other: ${sdk.name}`);
    },
  );

  /** Makes an answer on the Messages API that Holdfast gives up. */
  async function cutOff(thread: string): Promise<void> {
    const faults: Fault[] = [
      { kind: 'reset', at: { event: 12 } },
      ...Array.from({ length: 10 }, (): Fault => ({ kind: 'status', status: 503 })),
    ];
    deployment.plan(thread, { parts: [{ text: words(50) }], faults });
    await expect(anthropicTurns(true).say(thread, living.url, thread, () => {})).rejects.toThrow();
  }
  const GIVEN_UP = expect.stringMatching(/^last_partial_recovery: .*"status":"failed"/) as unknown;

  test('is told on chat completions as well', async () => {
    const thread = 'partial, then a chat';
    await cutOff(thread);
    const question = 'a chat, then';
    deployment.plan(question, SHORT);
    const asked = streamRequest(modelOf('h1'), question);
    await (await post(living.url, asked, { 'holdfast-thread': thread })).text();
    const [told] = bodiesOf(deployment, question);
    expect(told?.messages).toEqual([
      { role: 'system', content: GIVEN_UP },
      { role: 'user', content: question },
    ]);
  });

  test('is told by a request whose answer is come back to', async () => {
    const thread = 'partial, then in the background';
    await cutOff(thread);
    const question = 'in the background, then';
    const text = words(30);
    deployment.plan(question, { parts: [{ text }], faults: [{ kind: 'reset', at: { event: 12 } }] });
    const client = new OpenAI({ baseURL: living.url, apiKey: API_KEY, maxRetries: 0 });
    const request = { model: modelOf('h1'), input: question, background: true };
    const headers = { 'holdfast-thread': thread };
    const response = await client.responses.stream(request, { headers }).finalResponse();
    expect(response.output_text).toBe(text);
    expect(bodiesOf(deployment, question).map(({ input }) => input)).toEqual([
      [
        { type: 'message', role: 'system', content: GIVEN_UP },
        { role: 'user', content: question },
      ],
    ]);
  });
});
