import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Fault } from '../provider/fault.ts';
import { API_KEY } from './clients/chat-client.ts';
import { Deployment, modelOf } from './deployment.ts';
import type { HoldfastProcess } from './holdfast-process.ts';

const TEXT = { text: 'The tide comes in twice a day, and goes out again as often.' };
const CUT: Fault = { kind: 'reset', at: { event: 9 } };

/** A recovered answer that a later request refers to. */
describe('the id of an answer', () => {
  let deployment: Deployment;
  let questions = 0;

  beforeAll(async () => {
    deployment = await Deployment.start({ replicas: 2 });
  });
  afterAll(() => deployment.close());

  const clientOf = ({ url }: HoldfastProcess, apiKey = API_KEY) =>
    new OpenAI({ baseURL: url, apiKey, maxRetries: 0 });

  const planned = (...faults: readonly Fault[]) => {
    const question = `ids: ${questions++}`;
    deployment.plan(question, { parts: [TEXT], faults });
    return { model: modelOf('h1'), input: question };
  };

  /**
   * The id that the client sees for its answer, and a pattern for the provider's id of the response that completed it.
   */
  async function recovered() {
    const { holdfast } = deployment;
    const asked = planned(CUT);
    const response = await clientOf(holdfast).responses.stream(asked).finalResponse();
    expect(response.output_text).toBe(TEXT.text);
    expect(deployment.requests(asked.input)).toHaveLength(2);
    const serial = Number(/\d+$/.exec(response.id)?.[0]);
    return { shown: response.id, finished: new RegExp(`^resp_chatcmpl-(?!${serial}$)\\d+$`) };
  }

  /** The ids that the provider is asked to continue. */
  const sent = (question: string) =>
    deployment.requests(question).map(({ body }) => (body as Record<string, unknown>).previous_response_id);

  test('is what the provider calls it, wherever the client continues from it', async () => {
    const { shown, finished } = await recovered();
    for (const replica of deployment.replicas) {
      const client = clientOf(replica);
      const streamed = { ...planned(), previous_response_id: shown };
      await client.responses.stream(streamed).finalResponse();
      const whole = { ...planned(), previous_response_id: shown };
      await client.responses.create(whole);
      expect(sent(streamed.input)).toEqual([expect.stringMatching(finished)]);
      expect(sent(whole.input)).toEqual(sent(streamed.input));
    }
  });

  test('stays what it is in a request for the rest', async () => {
    const { shown, finished } = await recovered();
    const asked = { ...planned(CUT), previous_response_id: shown };
    await clientOf(deployment.other).responses.stream(asked).finalResponse();
    expect(sent(asked.input)).toEqual(Array.from({ length: 2 }, () => expect.stringMatching(finished)));
  });

  test('means nothing to another client', async () => {
    const { shown } = await recovered();
    const asked = { ...planned(), previous_response_id: shown };
    await clientOf(deployment.holdfast, 'another-key').responses.stream(asked).finalResponse();
    expect(sent(asked.input)).toEqual([shown]);
  });

  test('of an answer that went well is left alone, and so is an unknown one', async () => {
    const first = planned();
    const response = await clientOf(deployment.holdfast).responses.stream(first).finalResponse();
    for (const previous_response_id of [response.id, 'resp_of_old']) {
      const asked = { ...planned(), previous_response_id };
      await clientOf(deployment.holdfast).responses.stream(asked).finalResponse();
      expect(sent(asked.input)).toEqual([previous_response_id]);
    }
  });
});
