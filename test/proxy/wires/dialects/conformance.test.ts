import { describe, expect, test } from 'vitest';
import { nudgeText } from '../../../../src/plans/continuation.ts';
import { forModel } from '../../../../src/proxy/wires/common/dialect.ts';
import { DIALECTS, dialectAt } from '../../../../src/proxy/wires/dialects/registry.ts';
import { deltasOf } from '../../../provider/deltas.ts';
import type { Fault } from '../../../provider/fault.ts';
import { type Answer, Conversation, expectWhole } from './conversation.ts';
import { FIXTURES } from './fixture-registry.ts';
import type { Fixture } from './fixtures/fixture.ts';

const ALL = Object.entries(FIXTURES).map(([name, fixture]) => ({ name, fixture }));
const PREFILLED = ALL.filter(({ fixture }) => fixture.prefill);
const SIGNED = ALL.filter(({ fixture }) => DIALECTS[fixture.dialect].sign);

/** An event after which there is enough text to distinguish a continuation from a new answer. */
const placeOf = ({ parts, accent, model }: Fixture): number => {
  const deltas = deltasOf(parts, {});
  const { finished_after } = accent.tell(
    { deltas, finish: 'stop' },
    { id: '', model, created: 0 },
    undefined,
  );
  return finished_after - 6;
};
const cutAt = (fixture: Fixture): Fault => ({ kind: 'reset', at: { event: placeOf(fixture) } });

/** The text after which the provider was cut. */
const partialOf = ({ requests }: Answer): string => {
  const said = requests[1]?.body.messages[1];
  return String(said?.content);
};

const TOOLS = [{ type: 'function', function: { name: 'tides', parameters: { type: 'object' } } }];

test.each(ALL)('$name: a healthy answer is forwarded as it came', async ({ fixture }) => {
  const conversation = await Conversation.begin(fixture);
  const healthy = await conversation.ask('healthy');
  expectWhole(healthy, fixture);
  const { id, created } = JSON.parse(healthy.payloads[0] ?? '') as { id: string; created: number };
  expect(healthy.payloads).toEqual(conversation.expected('healthy', { id, created }));
  expect(healthy.requests).toEqual([{ path: '/v1/chat/completions', body: conversation.request('healthy') }]);
});

test.each(ALL.filter(({ fixture }) => fixture.accent.ping))(
  '$name: its signs of life stay between us',
  async ({ fixture }) => {
    const conversation = await Conversation.begin(fixture);
    const pings: Fault = { kind: 'pings', at: { event: 4 }, every_ms: 1, for_ms: 10 };
    const pinged = await conversation.ask('pinged', { faults: [pings] });
    expectWhole(pinged, fixture);
    const { id, created } = JSON.parse(pinged.payloads[0] ?? '') as { id: string; created: number };
    expect(pinged.payloads).toEqual(conversation.expected('pinged', { id, created }));
    expect(pinged.requests).toHaveLength(1);
  },
);

describe('the rest is asked for', () => {
  test.each(PREFILLED)('$name: by a prefill with its own fields, and no others', async ({ fixture }) => {
    const conversation = await Conversation.begin(fixture);
    const answer = await conversation.ask('go on', { faults: [cutAt(fixture)] });
    expectWhole(answer, fixture);
    expect(answer.requests[1]).toEqual(prefillOf(conversation.request('go on'), fixture, partialOf(answer)));
    expect(answer.requests).toHaveLength(2);
  });

  test.each(ALL.filter(({ fixture }) => !fixture.prefill))('$name: by a nudge', async ({ fixture }) => {
    const conversation = await Conversation.begin(fixture);
    const answer = await conversation.ask('go on', { faults: [cutAt(fixture)] });
    expectWhole(answer, fixture);
    expect(answer.requests[1]).toEqual(nudgeOf(conversation.request('go on'), partialOf(answer)));
    expect(answer.requests).toHaveLength(2);
  });

  test.each(PREFILLED)('$name: in a request that has tools', async ({ fixture }) => {
    const { dialect, model } = fixture;
    const conversation = await Conversation.begin(fixture);
    const answer = await conversation.ask('tools', { faults: [cutAt(fixture)] }, { tools: TOOLS });
    expectWhole(answer, fixture);
    const asked = conversation.request('tools', { tools: TOOLS });
    const partial = partialOf(answer);
    expect(answer.requests[1]).toEqual(
      forModel(DIALECTS[dialect].prefillWithTools, model)
        ? prefillOf(asked, fixture, partial)
        : nudgeOf(asked, partial, true),
    );
  });

  test.each(PREFILLED)('$name: never by a prefill where a format is asked for', async ({ fixture }) => {
    const conversation = await Conversation.begin(fixture);
    const format = { response_format: { type: 'json_object' } };
    const document = [{ text: '{"organ": "holdfast", "grips": ["rock", "shell", "pier"]}' }];
    const plan = { parts: document, faults: [{ kind: 'reset', at: { event: 8 } } as const] };
    const answer = await conversation.ask('format', plan, format);
    expectWhole(answer, { ...fixture, parts: document });
    expect(answer.requests.map(({ body }) => body)).toEqual(
      answer.requests.map(() => conversation.request('format', format)),
    );
    expect(answer.requests).toHaveLength(2);
  });

  test.each(PREFILLED)('$name: without a format where that is plain text', async ({ fixture }) => {
    const conversation = await Conversation.begin(fixture);
    const format = { response_format: { type: 'text' } };
    const answer = await conversation.ask('plain', { faults: [cutAt(fixture)] }, format);
    expectWhole(answer, fixture);
    expect(answer.requests[1]?.body).not.toHaveProperty('response_format');
  });
});

describe('a prefill that does not work', () => {
  test.each(PREFILLED)(
    '$name: refused, it is remembered, and no error of the client',
    async ({ fixture }) => {
      const conversation = await Conversation.begin(fixture);
      const plan = { faults: [cutAt(fixture)], continuation: 'rejects_prefill' } as const;
      const refused = await conversation.ask('refused', plan);
      expectWhole(refused, fixture);
      expect(refused.requests.map(({ body }) => body.messages.at(-1)?.role)).toEqual([
        'user',
        'assistant',
        'user',
      ]);

      const remembered = await conversation.ask('remembered', plan);
      expectWhole(remembered, fixture);
      expect(remembered.requests.map(({ body }) => body.messages.at(-1)?.role)).toEqual(['user', 'user']);
    },
  );

  test.each(PREFILLED.filter(({ fixture }) => fixture.isTried))(
    '$name: answered anew, it is remembered, and nothing is said twice',
    async ({ fixture }) => {
      const conversation = await Conversation.begin(fixture);
      const plan = { faults: [cutAt(fixture)], continuation: 'ignores_prefill' } as const;
      const ignored = await conversation.ask('ignored', plan);
      expectWhole(ignored, fixture);
      expect(ignored.requests[1]?.body.messages.at(-1)?.role).toBe('assistant');

      const remembered = await conversation.ask('remembered', plan);
      expectWhole(remembered, fixture);
      expect(remembered.requests.map(({ body }) => body.messages.at(-1)?.role)).toEqual(['user', 'user']);
    },
  );

  test('DeepSeek: without its other path, as behind a gateway, the rest is asked for by a nudge', async () => {
    const fixture = FIXTURES.deepseek;
    const conversation = await Conversation.begin(fixture);
    const missing: Fault = { kind: 'status', status: 404, body: { detail: 'Not Found' } };
    const plan = { faults: [cutAt(fixture), missing] };
    const answer = await conversation.ask('missing', plan);
    expectWhole(answer, fixture);
    expect(answer.requests.map(({ path }) => path)).toEqual([
      '/v1/chat/completions',
      '/beta/chat/completions',
      '/v1/chat/completions',
    ]);
    const remembered = await conversation.ask('remembered', { faults: [cutAt(fixture)] });
    expect(remembered.requests.map(({ path }) => path)).toEqual([
      '/v1/chat/completions',
      '/v1/chat/completions',
    ]);
  });
});

describe('an upstream whose dialect is not configured', () => {
  test.each(SIGNED)('$name: is recognised by what it sends', async ({ fixture }) => {
    const conversation = await Conversation.begin(fixture, {});
    const answer = await conversation.ask('who are you', { faults: [cutAt(fixture)] });
    expectWhole(answer, fixture);
    const asked = conversation.request('who are you');
    const partial = partialOf(answer);
    expect(answer.requests[1]).toEqual(
      fixture.prefill ? prefillOf(asked, fixture, partial) : nudgeOf(asked, partial),
    );
  });

  test('is tried, where what it sends says nothing', async () => {
    const fixture = FIXTURES.generic;
    const conversation = await Conversation.begin(fixture, {});
    expect(dialectAt('http://127.0.0.1:8000/v1')).toBeUndefined();
    const answer = await conversation.ask('who are you', { faults: [cutAt(fixture)] });
    expectWhole(answer, fixture);
    expect(answer.requests[1]).toEqual(
      prefillOf(conversation.request('who are you'), fixture, partialOf(answer)),
    );
  });

  test('is asked as configured, whatever it sends', async () => {
    const fixture = FIXTURES.vllm;
    const conversation = await Conversation.begin(fixture, { dialect: 'openai' });
    const answer = await conversation.ask('who are you', { faults: [cutAt(fixture)] });
    expectWhole(answer, fixture);
    expect(answer.requests[1]).toEqual(nudgeOf(conversation.request('who are you'), partialOf(answer)));
  });
});

type Asked = ReturnType<Conversation['request']>;

const prefillOf = (asked: Asked, { prefill }: Fixture, partial: string) => ({
  path: prefill?.path ?? '/v1/chat/completions',
  body: {
    ...asked,
    ...prefill?.parameters,
    messages: [...asked.messages, { role: 'assistant', content: partial, ...prefill?.fields }],
  },
});

const nudgeOf = (asked: Asked, partial: string, hasTools = false) => ({
  path: '/v1/chat/completions',
  body: {
    ...asked,
    messages: [
      ...asked.messages,
      { role: 'assistant', content: partial },
      { role: 'user', content: nudgeText({ delivered: partial, hasTools, cutTools: [], insists: false }) },
    ],
  },
});
