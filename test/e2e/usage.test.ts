import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { isObject } from '../../src/lib/json.ts';
import { textPieces } from '../provider/pieces.ts';
import { PROMPT_END } from '../provider/request.ts';
import type { Continuation, Plan, Script } from '../provider/script.ts';
import { CONTINUATIONS } from '../simulation/arbitraries.ts';
import { functionTools } from './clients/chat-client.ts';
import { Deployment, modelOf } from './deployment.ts';
import { TIDES } from './situations.ts';
import { expectNoWarnings } from './warnings.ts';

vi.setConfig({ maxConcurrency: 8, testTimeout: 90_000 });

interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
}

type Payload = Readonly<Record<string, unknown>>;

interface Wire {
  readonly path: string;
  /** Events before the first one with text. */
  readonly opening_events: number;
  readonly takesTools: boolean;
  readonly limit: 'max_tokens' | 'max_output_tokens';
  body(question: string, tools: boolean): object;
  /** The usage of the whole answer, as the wire's clients read it. */
  usageOf(payloads: readonly Payload[]): Usage | undefined;
  textOf(payload: Payload): unknown;
}

const PROSE =
  'The tide comes in twice a day and holdfasts grip what is left of rock between one storm and the next one. ';
const ANSWER = Array.from({ length: 12 }, (_, index) => `Storm ${index + 1}: ${PROSE}`)
  .join('\n')
  .trim();
/** In characters. A few tokens are less than 2 % of the longer question, and more than that of the shorter one. */
const QUESTION_LENGTHS = [6000, 160];
/** As a fraction of the streamed answer. */
const CUTS = [0.02, 0.5, 0.95];
/**
 * The tolerance for the prompt's tokens, which must be separated from those of the repeated answer: a number, or a
 * fraction of the prompt if that is more.
 */
const PROMPT_ERROR_TOKENS = 3;
const PROMPT_ERROR = 0.02;
/** Repeated words may split into different tokens. */
const ANSWER_ERROR_TOKENS = 2;
const LIMIT_TOKENS = 100;

const WIRES: Readonly<Record<string, Wire>> = {
  chat: {
    path: '/chat/completions',
    opening_events: 1,
    limit: 'max_tokens',
    takesTools: true,
    body: (question, tools) => ({
      stream_options: { include_usage: true },
      messages: [{ role: 'user', content: question }],
      ...(tools && { tools: functionTools([TIDES]) }),
    }),
    usageOf: (payloads) => payloads.map(({ usage }) => usage).findLast(isObject) as Usage | undefined,
    textOf: ({ choices }) => (choices as [{ delta: { content?: string } }] | undefined)?.[0]?.delta.content,
  },
  completions: {
    path: '/completions',
    opening_events: 0,
    limit: 'max_tokens',
    takesTools: false,
    body: (question) => ({ stream_options: { include_usage: true }, prompt: question + PROMPT_END }),
    usageOf: (payloads) => payloads.map(({ usage }) => usage).findLast(isObject) as Usage | undefined,
    textOf: ({ choices }) => (choices as [{ text: string }] | undefined)?.[0]?.text,
  },
  messages: {
    path: '/messages',
    opening_events: 2,
    limit: 'max_tokens',
    takesTools: true,
    body: (question, tools) => ({
      max_tokens: 4000,
      messages: [{ role: 'user', content: question }],
      ...(tools && { tools: [{ name: TIDES.name, input_schema: TIDES.parameters }] }),
    }),
    usageOf: (payloads) => {
      const reports = payloads
        .map(({ message, usage }) => (isObject(message) ? message.usage : usage))
        .filter(isObject);
      const { input_tokens, output_tokens } = Object.assign({}, ...reports) as Record<string, number>;
      return { prompt_tokens: input_tokens ?? 0, completion_tokens: output_tokens ?? 0 };
    },
    textOf: ({ delta }) => (isObject(delta) ? delta.text : undefined),
  },
  responses: {
    path: '/responses',
    opening_events: 4,
    limit: 'max_output_tokens',
    takesTools: true,
    body: (question, tools) => ({
      store: false,
      input: question,
      ...(tools && {
        tools: [{ type: 'function', name: TIDES.name, parameters: TIDES.parameters, strict: true }],
      }),
    }),
    usageOf: (payloads) => {
      const { usage } = payloads.map(({ response }) => response).findLast(isObject) ?? {};
      if (!isObject(usage)) return undefined;
      const { input_tokens, output_tokens } = usage as Record<string, number>;
      return { prompt_tokens: input_tokens ?? 0, completion_tokens: output_tokens ?? 0 };
    },
    textOf: ({ type, delta }) => (type === 'response.output_text.delta' ? delta : undefined),
  },
};

/** Providers that differ in what they count as a token, and in where they report usage. */
const TOKENIZERS: Readonly<Record<string, Partial<Script>>> = {
  'words, and four characters of a prompt': {},
  'five characters': { chunk: 5, characters_per_token: 5 },
  'three characters, reported with the finish': { chunk: 3, characters_per_token: 3, usage: 'finish_chunk' },
};

/** One target that nothing is known about, and one that is known to continue a prefix. */
const UPSTREAMS: Readonly<Record<string, Partial<Plan>>> = { h1: {}, vllm: { prefill: 'vllm' } };

interface Case extends Partial<Plan> {
  readonly question: string;
  readonly tools: boolean;
  /** Additional fields of the request. */
  readonly more?: object;
}

let deployment: Deployment;
expectNoWarnings();
beforeAll(async () => {
  deployment = await Deployment.start({ recovery: { max_attempts: 10 } });
});
afterAll(() => deployment.close());

async function ask(wire: Wire, model: string, { question, tools, more, ...plan }: Case) {
  deployment.plan(question, { parts: [{ text: ANSWER }], ...plan });
  const response = await fetch(deployment.holdfast.url + wire.path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer client-key' },
    body: JSON.stringify({ model, stream: true, ...wire.body(question, tools), ...more }),
  });
  const events = (await response.text()).match(/(?<=^data: )\{.*$/gm) ?? [];
  const payloads = events.map((event) => JSON.parse(event) as Payload);
  return {
    usage: wire.usageOf(payloads),
    text: payloads.map((payload) => wire.textOf(payload) ?? '').join(''),
    requests: deployment.requests(question).length,
  };
}

/** Pads the question to a fixed length. */
const questionOf = (words: string, characters: number): string =>
  `${words} ${PROSE.repeat(Math.ceil(characters / PROSE.length))}`.slice(0, characters);

describe.each(Object.entries(WIRES))('%s', (name, wire) => {
  describe.each(Object.entries(UPSTREAMS))('at %s', (upstream, takes) => {
    const modelFor = (manner: string) => modelOf(upstream, `${name}-${manner}`);

    async function charges(manner: Continuation, tokenizer: string, characters: number, tools: boolean) {
      const counts = TOKENIZERS[tokenizer];
      const pieces = textPieces(ANSWER, counts?.chunk).length;
      const asked = (words: string, faults: Plan['faults'] = []) =>
        ask(wire, modelFor(manner), {
          ...takes,
          ...counts,
          continuation: manner,
          faults,
          question: questionOf([name, upstream, manner, tokenizer, tools, words].join(' '), characters),
          tools,
        });
      const uncut = await asked('uncut');
      expect(uncut.text).toBe(ANSWER);
      for (const cut of CUTS) {
        const event = wire.opening_events + Math.ceil(cut * pieces);
        const { usage, text, requests } = await asked(`cut at ${cut}`, [{ kind: 'reset', at: { event } }]);
        const about = `${tokenizer}, ${characters} characters, tools: ${tools}, cut at ${cut}`;
        expect(requests, about).toBeGreaterThan(1);
        const own = uncut.usage?.prompt_tokens ?? 0;
        const off = Math.abs((usage?.prompt_tokens ?? 0) - own);
        expect(off, about).toBeLessThanOrEqual(Math.max(PROMPT_ERROR * own, PROMPT_ERROR_TOKENS));
        // Text that a disobedient model repeats was generated twice.
        if (text !== ANSWER) continue;
        const more = (usage?.completion_tokens ?? 0) - (uncut.usage?.completion_tokens ?? 0);
        expect(Math.abs(more), about).toBeLessThanOrEqual(ANSWER_ERROR_TOKENS);
      }
    }

    test.concurrent.each(CONTINUATIONS)(
      'a model of the manner %s: its client is charged for what it asked',
      async (manner) => {
        for (const tokenizer of Object.keys(TOKENIZERS))
          for (const characters of QUESTION_LENGTHS)
            for (const tools of wire.takesTools ? [false, true] : [false])
              await charges(manner, tokenizer, characters, tools);
      },
    );

    test.each(['straight_on', 'obedient'] as const)(
      'a model that is %s ends at the limit of its client',
      async (manner) => {
        const { usage, text } = await ask(wire, modelFor(`limited-${manner}`), {
          ...takes,
          continuation: manner,
          faults: [{ kind: 'reset', at: { event: wire.opening_events + LIMIT_TOKENS / 2 } }],
          question: questionOf([name, upstream, 'limited', manner].join(' '), 160),
          tools: false,
          more: { [wire.limit]: LIMIT_TOKENS },
        });
        const limited = textPieces(ANSWER).slice(0, LIMIT_TOKENS).join('');
        expect(ANSWER.startsWith(text)).toBe(true);
        expect(Math.abs(text.length - limited.length)).toBeLessThanOrEqual(ANSWER_ERROR_TOKENS * 8);
        expect(usage?.completion_tokens).toBeLessThanOrEqual(LIMIT_TOKENS);
      },
    );

    test('a provider that reports nothing: the tools are in the estimate', async () => {
      const prompts: number[] = [];
      for (const tools of wire.takesTools ? [false, true] : [false]) {
        const { usage } = await ask(wire, modelFor('silent'), {
          ...takes,
          usage: 'none',
          faults: [{ kind: 'reset', at: { event: wire.opening_events + 40 } }],
          question: questionOf([name, upstream, 'silent', tools].join(' '), 160),
          tools,
        });
        prompts.push(usage?.prompt_tokens ?? 0);
      }
      const [bare = 0, withTools] = prompts;
      expect(bare).toBeGreaterThan(30);
      if (withTools !== undefined) expect(withTools).toBeGreaterThan(bare + 20);
    });
  });
});
