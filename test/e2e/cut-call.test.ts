import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cutInCall } from '../provider/cut-in-call.ts';
import type { Plan } from '../provider/script.ts';
import { functionTools } from './clients/chat-client.ts';
import { Deployment, modelOf, type Upstream } from './deployment.ts';
import { rawAnswer, streamRequest } from './raw-client.ts';
import { callTo, TIDES } from './situations.ts';

const SAID = 'Let me look at the tables.\n\n';
const CALL = callTo('call_brest', 'Brest');
const PARTS = [{ text: SAID }, { tool: CALL }];

describe('a call that is cut behind text (R3)', () => {
  let deployment: Deployment;
  beforeAll(async () => {
    deployment = await Deployment.start();
  });
  afterAll(() => deployment.close());

  async function ask(upstream: Upstream, plan: Partial<Plan>) {
    const question = `the tides, of ${upstream}, ${JSON.stringify(plan)}`;
    deployment.plan(question, { ...cutInCall('chat_completions', CALL.id, PARTS), ...plan });
    const tools = functionTools([TIDES]);
    const answer = await rawAnswer(
      deployment.holdfast.url,
      streamRequest(modelOf(upstream), question, { tools }),
    );
    const asked = deployment.requests(question).map(({ body }) => {
      const { messages } = body as { messages: readonly { role: string; content: string }[] };
      return messages.at(-1);
    });
    return { answer, asked };
  }

  test('is made again from the text before it by a target that continues exactly', async () => {
    const { answer, asked } = await ask('vllm', { prefill: 'vllm' });
    expect(asked).toMatchObject([{ role: 'user' }, { role: 'assistant', content: SAID.trimEnd() }]);
    expect(answer).toMatchObject({ text: SAID, toolCalls: [CALL], finish: 'tool_calls', done: true });
  });

  test('is asked for by name where what the target makes of a prefix is unknown', async () => {
    const { answer, asked } = await ask('h1', {});
    expect(asked).toHaveLength(2);
    expect(asked[1]?.content).toContain('was cut off and did not run: make it again');
    expect(answer).toMatchObject({ text: SAID, toolCalls: [CALL], finish: 'tool_calls', done: true });
  });
});
