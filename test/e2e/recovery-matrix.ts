import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Answer, ChatClient } from './clients/chat-client.ts';
import { Deployment, modelOf, type Upstream } from './deployment.ts';
import { callsOf, SITUATIONS, type Situation, textOf } from './situations.ts';
import { TROUBLES } from './troubles.ts';

/** Providers count the prompt's tokens by its length, which must not depend on the case. */
const QUESTION_CHARACTERS = 160;

/**
 * Every trouble in every situation, as an application sees it through this client: as if nothing had happened.
 * `connect` is called once, with the base URL.
 */
export function describeRecovery(connect: (url: string) => ChatClient | Promise<ChatClient>): void {
  let deployment: Deployment;
  let client: ChatClient;
  const warnings: unknown[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);

  beforeAll(async () => {
    vi.spyOn(console, 'warn').mockImplementation((...words) => warnings.push(words));
    vi.spyOn(console, 'error').mockImplementation((...words) => warnings.push(words));
    process.on('warning', onWarning);
    deployment = await Deployment.start();
    client = await connect(deployment.holdfast.url);
  });
  afterAll(async () => {
    process.off('warning', onWarning);
    vi.restoreAllMocks();
    await deployment.close();
    expect(warnings).toEqual([]);
  });

  const ask = async ({ name, parts, tools, at }: Situation, trouble?: (typeof TROUBLES)[number]) => {
    const upstream: Upstream = trouble?.upstream ?? 'h1';
    const content = `${client.name}: ${name}: ${trouble?.name ?? 'uncut'} `.padEnd(QUESTION_CHARACTERS, '.');
    deployment.plan(content, { parts, ...(trouble && { faults: [trouble.fault(at)] }) });
    const answer = await client.ask({ model: modelOf(upstream), content, tools });
    return { answer, requests: deployment.requests(content).length };
  };

  describe.concurrent.each(SITUATIONS)('$name', (situation) => {
    let uncut: Answer;
    beforeAll(async () => {
      uncut = (await ask(situation)).answer;
    });

    test('uncut', () => {
      const calls = callsOf(situation).map(({ id, name, arguments: text }) => ({
        id,
        name,
        arguments: JSON.parse(text) as unknown,
      }));
      expect(uncut.text).toBe(textOf(situation));
      expect(uncut.toolCalls).toEqual(calls);
      expect(uncut.finish).toMatch(calls.length > 0 ? /^tool[-_]calls$/ : 'stop');
      expect(uncut.usage).toBeDefined();
    });

    test.each(TROUBLES)('$name', async (trouble) => {
      const { answer, requests } = await ask(situation, trouble);
      expect(answer).toEqual(uncut);
      if (requests > 2 && trouble.upstream !== 'h2')
        console.log(
          'EXTRA',
          situation.name,
          trouble.name,
          requests,
          deployment.holdfast.log
            .filter((l) => l.msg === 'interrupted' && l.attempt === 2 && l.upstream !== 'h2')
            .map((l) => JSON.stringify(l))
            .join('\n'),
        );
      // More than one, if what broke was an HTTP/2 session that others were using as well.
      expect(requests).toBeGreaterThanOrEqual(trouble.classified ? 2 : 1);
    });
  });
}
