import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Fault, Position } from '../provider/fault.ts';
import type { Part } from '../provider/script.ts';
import type { ChatClient } from './clients/chat-client.ts';
import { Deployment, modelOf } from './deployment.ts';
import { callTo, TIDES } from './situations.ts';
import { TROUBLES } from './troubles.ts';

export const MAX_ATTEMPTS = 2;
/** More attempts than any run makes. */
export const ALWAYS = MAX_ATTEMPTS + 2;
/**
 * The first attempt fails at `at`, all later ones before they produce anything, since progress would earn more
 * attempts.
 */
export const lostForGood = (fault: (at: Position) => Fault, at: Position): readonly Fault[] => [
  fault(at),
  ...Array.from({ length: ALWAYS }, () => fault({ event: 0 })),
];
export const TEXT = {
  text: 'The tide comes in twice a day, and what holds fast to the rock is there when it is out again.',
};
export const [BREST, LORIENT] = [callTo('call_brest', 'Brest'), callTo('call_lorient', 'Lorient')];

const REFUSAL = 'The kelp is full of otters.';
export const refusalOf = (type: string) => ({ error: { type, message: REFUSAL } });

const ANSWERS: Readonly<Record<string, readonly Part[]>> = {
  text: [TEXT],
  'reasoning and text': [{ reasoning: 'Kelp.' }, TEXT],
  'text and a tool call': [TEXT, { tool: BREST }],
  'a tool call': [{ tool: BREST }],
};

export type Clients = readonly (readonly [name: string, connect: (url: string) => ChatClient])[];

/** What differs between wires. */
export interface GiveUpOptions {
  readonly clients: Clients;
  /** Names of the troubles that answers are lost to. */
  readonly lostBy: readonly string[];
  /** A position after some of this answer and before its end. */
  readonly within: (answer: string) => Position;
  /** A position after the whole first call and within the second. */
  readonly inSecondCall: (parts: readonly Part[]) => Position;
  /** The body with which a provider refuses; by default in OpenAI's format. */
  readonly refusal?: object;
}

export interface GiveUp {
  readonly deployment: Deployment;
  /** Plans these parts as the answer to a question, and returns the question. */
  planned(question: string, parts: readonly Part[], faults: readonly (Fault | null)[]): string;
}

/** Tests what applications see of lost answers through these clients. The deployment is available once tests run. */
export function describeGiveUp(options: GiveUpOptions): GiveUp {
  const { clients, lostBy, within, inSecondCall, refusal = refusalOf('server_error') } = options;
  let deployment: Deployment;
  beforeAll(async () => {
    deployment = await Deployment.start({ recovery: { max_attempts: MAX_ATTEMPTS } });
  });
  afterAll(() => deployment.close());

  const planned: GiveUp['planned'] = (question, parts, faults) => {
    deployment.plan(question, { parts, faults });
    return question;
  };

  describe.concurrent.each(clients)('%s', (name, connect) => {
    let client: ChatClient;
    beforeAll(() => {
      client = connect(deployment.holdfast.url);
    });
    afterAll(() => client.close?.());

    const troubles = TROUBLES.filter((trouble) => lostBy.includes(trouble.name));
    const cases = Object.keys(ANSWERS).flatMap((said) => troubles.map((trouble) => ({ said, trouble })));

    test.each(cases)('$said, lost for good by $trouble.name, is an error', async ({ said, trouble }) => {
      const faults = lostForGood(trouble.fault, within(said));
      const content = planned(`${name}: ${said}: ${trouble.name}`, ANSWERS[said] ?? [], faults);
      const asked = client.ask({ model: modelOf(trouble.upstream), content, tools: [TIDES] });
      await expect(asked).rejects.toThrow(/interrupted|can't answer|didn't answer/);
      const { length: attempts } = deployment.requests(content);
      // On a busy machine, such short clocks may expire before the request reaches the provider.
      if (trouble.upstream === 'impatient') expect(attempts).toBeLessThanOrEqual(MAX_ATTEMPTS);
      else expect(attempts).toBe(MAX_ATTEMPTS);
    });

    test('a provider that only refuses is an error', async () => {
      const refused: Fault = { kind: 'status', status: 503, body: refusal };
      const faults = Array.from({ length: ALWAYS }, () => refused);
      const content = planned(`${name}: refused`, [TEXT], faults);
      const asked = client.ask({ model: modelOf('h1'), content, tools: [] });
      await expect(asked).rejects.toThrow(REFUSAL);
      expect(deployment.requests(content)).toHaveLength(MAX_ATTEMPTS);
    });

    test('so is a provider that cannot be reached', async () => {
      const asked = client.ask({ model: modelOf('unknown'), content: `${name}: nowhere`, tools: [] });
      await expect(asked).rejects.toThrow("No route serves the model 'unknown-model'");
    });

    test('a settled tool call arrives, although the one after it was cut', async () => {
      const parts = [{ tool: BREST }, { tool: LORIENT }];
      const content = planned(`${name}: settled`, parts, [{ kind: 'reset', at: inSecondCall(parts) }]);
      const answer = await client.ask({ model: modelOf('h1'), content, tools: [TIDES] });
      expect(answer).toMatchObject({
        text: '',
        toolCalls: [{ id: BREST.id, name: BREST.name, arguments: JSON.parse(BREST.arguments) as unknown }],
        finish: expect.stringMatching(/^tool[-_]calls$/) as string,
      });
      expect(answer.usage).toBeDefined();
      expect(deployment.requests(content)).toHaveLength(1);
    });
  });

  return {
    get deployment() {
      return deployment;
    },
    planned,
  };
}
