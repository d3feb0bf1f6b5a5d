import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Answer, ChatClient } from './clients/chat-client.ts';
import { recoveredOf } from './cut-thoughts.ts';
import { Deployment, modelOf } from './deployment.ts';
import { callsOf, SITUATIONS, type Situation, textOf } from './situations.ts';
import { TROUBLES, type Trouble } from './troubles.ts';
import { expectNoWarnings } from './warnings.ts';

/** Providers count a prompt's tokens by its length, which must be the same in every case. */
const QUESTION_CHARACTERS = 160;

/** Checks every trouble in every situation through this client: the application must notice nothing. */
export function describeRecovery(
  connect: (url: string) => ChatClient,
  situations: readonly Situation[] = SITUATIONS,
): void {
  const cases = situations.flatMap((situation) => TROUBLES.map((trouble) => ({ situation, trouble })));
  const casesOver = (isShared: boolean) =>
    cases.filter(({ trouble }) => (trouble.upstream === 'h2') === isShared);
  let deployment: Deployment;
  let client: ChatClient;
  const uncut = new Map<Situation, Answer>();

  expectNoWarnings();
  beforeAll(async () => {
    // On a busy machine, such short clocks may also expire on requests without a fault.
    deployment = await Deployment.start({ recovery: { max_attempts: 10 } });
    client = connect(deployment.holdfast.url);
    for (const situation of situations) uncut.set(situation, (await ask(situation)).answer);
  });
  afterAll(async () => {
    await client.close?.();
    await deployment.close();
  });

  const ask = async ({ name, parts, tools, at }: Situation, trouble?: Trouble) => {
    const content = `${client.name}: ${name}: ${trouble?.name ?? 'uncut'} `.padEnd(QUESTION_CHARACTERS, '.');
    deployment.plan(content, { parts, ...(trouble && { faults: [trouble.fault(at)] }) });
    const answer = await client.ask({ model: modelOf(trouble?.upstream ?? 'h1'), content, tools });
    return { answer, requests: deployment.requests(content).length };
  };

  const recovers = async ({ situation, trouble }: (typeof cases)[number]) => {
    const { answer, requests } = await ask(situation, trouble);
    expect(answer).toEqual(recoveredOf(client, uncut.get(situation), answer));
    if (!trouble.classified) expect(requests).toBe(1);
    // On a busy machine, such short clocks may expire once more.
    else if (trouble.upstream === 'impatient') expect(requests).toBeGreaterThanOrEqual(2);
    else expect(requests).toBe(2);
  };

  test.each(situations)('uncut: $name', (situation) => {
    const answer = uncut.get(situation);
    const calls = callsOf(situation).map(({ id, name, arguments: text }) => ({
      id,
      name,
      arguments: JSON.parse(text) as unknown,
    }));
    expect(answer?.text).toBe(textOf(situation));
    expect(answer?.toolCalls).toEqual(calls);
    expect(answer?.finish).toMatch(calls.length > 0 ? /^tool[-_]calls$/ : 'stop');
    expect(answer?.usage).toBeDefined();
  });

  test.concurrent.each(casesOver(false))('$situation.name: $trouble.name', recovers);
  // Run these one by one: a broken connection would break every stream that it carries.
  test.each(casesOver(true))('$situation.name: $trouble.name', recovers);
}
