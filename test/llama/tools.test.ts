import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { functionTools } from '../e2e/clients/chat-client.ts';
import { callTo, TIDES } from '../e2e/situations.ts';
import { charactersOf } from './cuts.ts';
import { LlamaDeployment, type ModelName } from './deployment.ts';

const SAID = 'Let me look at the tables.\n\n    Brest first.\n';
const CALL = callTo('', 'Brest');
/** The template's format for calls, which llama-server parses. */
const TEXT = `${SAID}<tool_call>\n{"name": "${CALL.name}", "arguments": ${CALL.arguments}}\n</tool_call>`;
const ALL = { calls: [{ name: CALL.name, arguments: CALL.arguments }], finish: ['tool_calls'], done: true };

const IN_TEXT = [1, 2, 4, 8, 15, 16, 20, charactersOf(SAID).length - 16];
/** Events of a call: first its complete name, then its arguments in pieces. */
const IN_CALL = [1, 2, 5, 9, 14];

describe.skipIf(inject('llamaServer') === '')('an answer with a call that llama-server parses', () => {
  let deployment: LlamaDeployment;

  beforeAll(async () => {
    deployment = await LlamaDeployment.start(inject('llamaServer'));
  });
  afterAll(() => deployment.close());

  const check = async (model: ModelName, events: number) => {
    const question = { model, wire: 'chat', text: TEXT, tools: functionTools([TIDES]) } as const;
    const expected = await deployment.uncut(question);
    expect(expected).toMatchObject({ text: SAID, ...ALL });
    const { answer } = await deployment.ask(question, [{ events }]);
    const { usage, ...said } = answer;
    const { usage: expectedUsage, ...expectedSaid } = expected;
    expect(said).toEqual(expectedSaid);
    if (model === 'resume') expect(usage).toEqual(expectedUsage);
    // The markup around a call consists of tokens that no event shows, so Holdfast can only estimate the prompt's share
    // of the sum.
    expect(usage.total).toBe(expectedUsage.total);
  };

  test.each(IN_TEXT)('is the uncut one where answers are kept, cut after %i events of the text', (events) =>
    check('resume', events),
  );

  test.each(IN_TEXT)('is the uncut one where no answer is kept, cut after %i events of the text', (events) =>
    check('prefill', events),
  );

  test.each(IN_CALL)('is the uncut one where answers are kept, cut after %i events of the call', (events) =>
    check('resume', charactersOf(SAID).length + events),
  );
});
