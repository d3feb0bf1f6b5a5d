import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { needs } from '../needs.ts';
import type { Fault } from '../provider/fault.ts';
import type { ConnectForDocuments, DocumentClient } from './clients/documents.ts';
import * as clients from './clients/documents.ts';
import { Deployment, modelOf } from './deployment.ts';
import { MESSAGE_SITUATIONS } from './message-situations.ts';
import { pythonEnvironment } from './python/environment.ts';
import { RESPONSE_SITUATIONS } from './response-situations.ts';
import { SITUATIONS, type Situation } from './situations.ts';
import { TROUBLES, type Trouble } from './troubles.ts';

vi.setConfig({ maxConcurrency: 16, testTimeout: 120_000 });

/** Providers count a prompt's tokens by its length, which must be the same in every case. */
const QUESTION_CHARACTERS = 160;
const MAX_ATTEMPTS = 4;
/** More attempts than any run makes. */
const ALWAYS = 3 * MAX_ATTEMPTS;

const python = await pythonEnvironment();
const { pythonDocuments, ...ofNode } = clients;
const CONNECTIONS: readonly ConnectForDocuments[] = [
  ...Object.values(ofNode),
  ...('missing' in python ? [] : pythonDocuments(python.interpreter)),
];
if ('missing' in python) test('Python', needs(python), () => {});

const NAMES = ['text', 'text and a tool call, cut in the call', 'a tool call'];
/** The other troubles are tried in text only, as their effect doesn't depend on the place. */
const EVERYWHERE = ['reset', 'error_anthropic', 'h2_rst'];
const IN_TEXT = ['clean_eof', 'finish_abort', 'status 503', 'json_200'];

/** The situations that this client's wire can express. */
function situationsOf({ wire }: DocumentClient): readonly Situation[] {
  const situations =
    wire === 'messages' ? MESSAGE_SITUATIONS : wire === 'responses' ? RESPONSE_SITUATIONS : SITUATIONS;
  return situations.filter(
    ({ name, tools }) => NAMES.includes(name) && (wire !== 'completions' || tools.length === 0),
  );
}

let deployment: Deployment;
beforeAll(async () => {
  deployment = await Deployment.start({ recovery: { max_attempts: MAX_ATTEMPTS } });
});
afterAll(() => deployment.close());

describe.each(CONNECTIONS.map((connect) => ({ name: connect('http://127.0.0.1:9/v1').name, connect })))(
  '$name',
  ({ name, connect }) => {
    let client: DocumentClient;
    beforeAll(() => {
      client = connect(deployment.holdfast.url);
    });
    afterAll(() => client.close?.());
    const situations = situationsOf(connect('http://127.0.0.1:9/v1'));

    const ask = (model: string, { parts, tools }: Situation, what: string, faults: readonly Fault[] = []) => {
      const content = `${name}: ${what} `.padEnd(QUESTION_CHARACTERS, '.');
      deployment.plan(content, { parts, faults });
      return { content, answer: client.ask({ model, content, tools }) };
    };
    const uncut = new Map<Situation, Promise<unknown>>();
    const uncutOf = (situation: Situation): Promise<unknown> => {
      const known =
        uncut.get(situation) ?? ask(modelOf('direct'), situation, `direct, ${situation.name}`).answer;
      uncut.set(situation, known);
      return known;
    };

    const recovers = async ({ situation, trouble }: { situation: Situation; trouble: Trouble }) => {
      const what = `${situation.name}, ${trouble.name}`;
      const { content, answer } = ask(modelOf(trouble.upstream), situation, what, [
        trouble.fault(situation.at),
      ]);
      expect(await answer).toEqual(await uncutOf(situation));
      const streams = deployment.requests(content).map(({ body }) => (body as { stream?: boolean }).stream);
      expect(streams).toEqual([true, true]);
    };
    const troublesOf = ({ name: situation }: Situation) =>
      TROUBLES.filter((each) =>
        [...EVERYWHERE, ...(situation === 'text' ? IN_TEXT : [])].includes(each.name),
      );
    const cases = situations.flatMap((situation) =>
      troublesOf(situation).map((trouble) => ({ situation, trouble })),
    );
    const casesOver = (isShared: boolean) =>
      cases.filter(({ trouble }) => (trouble.upstream === 'h2') === isShared);

    test.concurrent.each(situations)('$name: the answer is that of the provider', async (situation) => {
      const { content, answer } = ask(modelOf('h1'), situation, `healthy, ${situation.name}`);
      expect(await answer).toEqual(await uncutOf(situation));
      expect(deployment.requests(content)).toHaveLength(1);
    });
    test.concurrent.each(casesOver(false))('$situation.name: $trouble.name', recovers);
    // Run these one by one: a broken connection would break every stream that it carries.
    test.each(casesOver(true))('$situation.name: $trouble.name', recovers);

    test.concurrent.each(['reset', 'error_vllm', 'status 503'])(
      'what is lost for good by %s is an error',
      async (kind) => {
        const trouble = TROUBLES.find((each) => each.name === kind);
        const [situation] = situations;
        if (!trouble || !situation) throw new Error('there is no such case');
        // On `/v1/completions` the answer continues from the exact token, so every attempt would make progress.
        const at = name.includes(', completions') ? { event: 3 } : situation.at;
        const faults = [
          trouble.fault(at),
          ...Array.from({ length: ALWAYS }, () => trouble.fault({ event: 0 })),
        ];
        const { answer } = ask(modelOf('h1'), situation, `lost, ${kind}`, faults);
        await expect(answer).rejects.toThrow(/interrupted|can't answer|scripted status is 503/);
      },
    );
  },
);
