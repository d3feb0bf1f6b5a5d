import { describe, expect, test } from 'vitest';
import { answer } from './answer.ts';
import { callsOf, chunksOf, contentOf, finishOf } from './reading.ts';
import type { Message } from './request.ts';
import type { Asked, Continuation, Plan } from './script.ts';

const CALLS = [{ id: 'call_a', name: 'weather', arguments: '{"city":"Köln"}' }];
const BEFORE = 'Grüße aus 東京 😀,  and\n\nsome extraordinarily long words. ';
const AFTER = ' And after the call.';
const TEXT = BEFORE + AFTER;
const PLAN: Plan = {
  parts: [
    { reasoning: 'Thinking.' },
    { text: BEFORE },
    { tool: CALLS[0] as (typeof CALLS)[0] },
    { text: AFTER },
  ],
};
const QUESTION: Message = { role: 'user', content: 'Tell me.' };
const GO_ON: Message = {
  role: 'user',
  content: 'Your answer was interrupted. Continue from exactly that point.',
};

type Manner = 'prefill' | 'nudge';

function ask(plan: Plan, messages: readonly Message[], fields: object = {}, path = '/v1/chat/completions') {
  const request = { model: 'm', stream: true, messages, ...fields };
  const steps = answer(plan, request, { attempt: 2, serial: 1, created: 0, path });
  const [head] = steps;
  const status = head?.kind === 'head' ? head.status : undefined;
  const body = Buffer.concat(steps.flatMap((step) => (step.kind === 'send' ? [step.bytes] : []))).toString();
  const chunks = chunksOf(body);
  const reasoning = chunks.map((chunk) => chunk.choices[0]?.delta.reasoning_content ?? '').join('');
  const pieces = chunks.map((chunk) => contentOf([chunk])).filter((piece) => piece !== '');
  return {
    status,
    body,
    text: pieces.join(''),
    pieces,
    reasoning,
    calls: callsOf(chunks),
    finish: finishOf(chunks),
  };
}

function goOn(by: Manner, prefix: string, plan: Plan = PLAN) {
  const said: Message = { role: 'assistant', content: prefix };
  return ask(plan, by === 'prefill' ? [QUESTION, said] : [QUESTION, said, GO_ON]);
}

const manner = (continuation: Continuation, rest: Partial<Plan> = {}): Plan => ({
  ...PLAN,
  continuation,
  ...rest,
});

/** All prefixes of a text that end between characters, except the empty one. */
const prefixes = (text: string) => [...text].map((_, count) => [...text].slice(0, count + 1).join(''));

describe.each(['prefill', 'nudge'] as const)('after a %s', (by) => {
  test('an obedient model says exactly the rest, wherever the text was cut', () => {
    for (const prefix of prefixes(TEXT)) {
      const { text, calls, reasoning, finish } = goOn(by, prefix);
      expect(prefix + text).toBe(TEXT);
      expect(calls).toEqual(prefix.length <= BEFORE.length ? CALLS : []);
      expect(finish).toEqual([prefix.length <= BEFORE.length ? 'tool_calls' : 'stop']);
      expect(reasoning).toBe('');
    }
  });

  test('the rest of a trimmed prefix begins with the whitespace that was trimmed', () => {
    const { text } = goOn(by, 'Grüße aus 東京 😀,');
    expect(text.startsWith('  and\n\nsome')).toBe(true);
    expect(goOn(by, 'Grüße aus 東京 😀,', manner('loses_whitespace')).text).toBe(text.trimStart());
  });

  test('repeats_tail begins with the last 40 characters', () => {
    for (const prefix of prefixes(TEXT)) {
      expect(goOn(by, prefix, manner('repeats_tail')).text).toBe(
        prefix.slice(-40) + TEXT.slice(prefix.length),
      );
    }
  });

  test('restarts says everything again, its reasoning too', () => {
    const { text, reasoning, calls } = goOn(by, 'Grüße', manner('restarts'));
    expect({ text, reasoning, calls }).toEqual({ text: TEXT, reasoning: 'Thinking.', calls: CALLS });
  });

  test('repeats_word begins with the word that was broken', () => {
    const begins = (prefix: string) => goOn(by, prefix, manner('repeats_word')).text.slice(0, 8);
    expect(begins('Grü')).toBe('Grüße au');
    expect(begins('Grüße')).toBe(' aus 東京 ');
    expect(begins('Grüße ')).toBe('aus 東京 😀'.slice(0, 8));
    expect(begins('Grüße aus 東')).toBe('東京 😀,  ');
  });

  test('prose_instead_of_tool talks about the call', () => {
    const { text, calls, finish } = goOn(by, 'Grüße', manner('prose_instead_of_tool'));
    expect(text).toBe(`${TEXT.slice('Grüße'.length)} I would now look that up with a tool.`);
    expect({ calls, finish }).toEqual({ calls: [], finish: ['stop'] });
  });

  test('rethinks begins with the reasoning, then continues', () => {
    const { text, reasoning, body } = goOn(by, 'Grüße', manner('obedient', { rethinks: true }));
    expect({ text, reasoning }).toEqual({ text: TEXT.slice('Grüße'.length), reasoning: 'Thinking.' });
    expect(body.indexOf('reasoning_content')).toBeLessThan(body.indexOf('"content":" aus"'));
  });
});

describe('what depends on how it is asked', () => {
  test('preamble answers a nudge, ignores_prefill and echoes_prefix a prefill', () => {
    const rest = TEXT.slice('Grüße aus'.length);
    const said = (by: Manner, continuation: Continuation) => goOn(by, 'Grüße aus', manner(continuation)).text;
    expect(said('nudge', 'preamble')).toBe(`Sure, here is the rest:\n${rest}`);
    expect(said('prefill', 'preamble')).toBe(rest);
    expect(said('nudge', 'ignores_prefill')).toBe(rest);
    expect(said('prefill', 'ignores_prefill')).toBe(TEXT);
    expect(said('nudge', 'echoes_prefix')).toBe(rest);
    expect(said('prefill', 'echoes_prefix')).toBe(TEXT);
  });

  test('echoes_prefix moves the trailing space to the delta after the echo', () => {
    const echo = manner('echoes_prefix');
    expect(goOn('prefill', 'Grüße ', echo).pieces.slice(0, 2)).toEqual(['Grüße', ' aus']);
    const [first, second, third] = goOn('prefill', 'Grüße aus 東京 😀,  and\n\nsome ', echo).pieces;
    expect(`${first}${second}`).toBe('Grüße aus 東京 😀,  and\n\nsome');
    expect(third).toBe(' extraor');
  });

  test('rejects_prefill is a 400 in words that name the reason, and obedient to a nudge', () => {
    const refused = goOn('prefill', 'Grüße', manner('rejects_prefill'));
    expect(refused.status).toBe(400);
    expect(refused.body).toContain(
      'This model does not support assistant message prefill. The conversation must end',
    );
    expect(goOn('nudge', 'Grüße', manner('rejects_prefill')).text).toBe(TEXT.slice('Grüße'.length));
  });
});

describe('a model whose words are written out', () => {
  const says = {
    prefill: ({ whole, sent, anchor }: Asked) => `[${anchor}]${whole.slice(sent.length)}`,
    nudge: ({ whole, sent, anchor }: Asked) => `${anchor}|${whole.slice(sent.length)}`,
  };
  const prefix = TEXT.slice(0, 20);
  const rest = TEXT.slice(20);

  test('says them to a prefill, in which nothing is quoted', () => {
    expect(goOn('prefill', prefix, { ...PLAN, says }).text).toBe(`[]${rest}`);
  });

  test('says them to a nudge, whose first quotation is the anchor', () => {
    const said: Message = { role: 'assistant', content: prefix };
    const nudge: Message = { role: 'user', content: 'Repeat "some\\n\\"words", not "others".' };
    expect(ask({ ...PLAN, says }, [QUESTION, said, nudge]).text).toBe(`some\n"words|${rest}`);
  });

  test('works as ever where there are none for such a request', () => {
    const { nudge } = says;
    expect(goOn('prefill', prefix, { ...PLAN, says: { nudge } }).text).toBe(rest);
  });
});

describe('what is no continuation', () => {
  test('a replay of the original request', () => {
    expect(ask(PLAN, [QUESTION]).text).toBe(TEXT);
  });

  test('an earlier turn that says something else', () => {
    expect(ask(PLAN, [QUESTION, { role: 'assistant', content: 'Hello!' }, QUESTION]).text).toBe(TEXT);
  });

  test('a prefix that the model never said', () => {
    expect(goOn('prefill', 'Something else').text).toBe(TEXT);
  });

  test.each([
    ['vllm', { continue_final_message: true, add_generation_prompt: false }, '/v1/chat/completions', {}],
    ['deepseek', {}, '/beta/chat/completions', { prefix: true }],
    ['litellm', {}, '/v1/chat/completions', { prefix: true }],
  ] as const)('a trailing assistant message without the fields of %s', (prefill, fields, path, flags) => {
    const plan = { ...PLAN, prefill };
    const said = { role: 'assistant', content: 'Grüße' };
    expect(ask(plan, [QUESTION, { ...said, ...flags }], fields, path).text).toBe(TEXT.slice('Grüße'.length));
    expect(ask(plan, [QUESTION, said]).text).toBe(TEXT);
    expect(ask(plan, [QUESTION, said, GO_ON]).text).toBe(TEXT.slice('Grüße'.length));
  });

  test('flags that contradict each other', () => {
    const both = { continue_final_message: true, add_generation_prompt: true };
    expect(ask(PLAN, [QUESTION, { role: 'assistant', content: 'Grüße' }], both).status).toBe(400);
  });
});
