import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { lostCallText } from '../../src/proxy/run/notices/lost-calls.ts';
import { cutInCall } from '../provider/cut-in-call.ts';
import { completionRequest } from '../provider/request.ts';
import type { Part, Plan } from '../provider/script.ts';
import { Deployment, modelOf } from './deployment.ts';
import type { HoldfastProcess } from './holdfast-process.ts';
import { post, streamRequest } from './raw-client.ts';
import { callTo, TIDES } from './situations.ts';
import { StreamClient } from './stream-client.ts';

/** Short enough for a test, long enough for a busy machine to renew it. */
const LEASE_MS = 1500;
const NOTED_MS = 10_000;
const MODEL = modelOf('h1');
const TOOLS = [{ type: 'function', function: TIDES }];
const BREST = callTo('call_brest', 'Brest');
const LORIENT = callTo('call_lorient', 'Lorient');
const QUIMPER = callTo('call_quimper', 'Quimper');
const SHORT: Plan = { parts: [{ text: 'The tide is out.' }] };
/** Threads whose clients don't come back. */
const THREADS = ['alone', 'beside', 'completed'];
const UNFINISHED = [{ id: LORIENT.id, name: LORIENT.name }];

/** Stalls as soon as the call to Lorient has begun. */
function silentInCall(parts: readonly Part[]): Plan {
  const { faults = [] } = cutInCall('chat_completions', LORIENT.id, parts);
  return { parts, faults: faults.map((fault) => ({ ...fault, kind: 'silence' }) as typeof fault) };
}

interface Status {
  readonly status: string;
  readonly tool_calls: readonly { readonly id: string }[];
  readonly unfinished_calls: readonly object[];
}

async function statusOf({ url }: HoldfastProcess, run: string): Promise<Status> {
  const runs = url.replace(/\/v1$/, '/holdfast/v1/runs');
  const response = await fetch(`${runs}/${run}`, { headers: { authorization: 'Bearer client-key' } });
  return (await response.json()) as Status;
}

describe('a replica that is killed while it holds a call', () => {
  let deployment: Deployment;
  let living: HoldfastProcess;
  const clients = new Map<string, StreamClient>();
  const runOf = (question: string) => clients.get(question)?.run ?? '';

  const PLANS: Readonly<Record<string, Plan>> = {
    alone: silentInCall([{ text: 'I look.' }, { tool: LORIENT }]),
    beside: silentInCall([{ text: 'I look.' }, { tool: BREST }, { tool: LORIENT }]),
    'taken over': silentInCall([{ text: 'I look.' }, { tool: LORIENT }]),
    'taken over, settled': silentInCall([{ text: 'I look.' }, { tool: QUIMPER }, { tool: LORIENT }]),
    // Each piece takes longer than a checkpoint interval.
    completed: {
      parts: [
        { text: 'I look.' },
        { tool: LORIENT },
        { tool: BREST },
        { text: ' And then I wait. '.repeat(50) },
      ],
      delay_ms: 80,
    },
  };

  beforeAll(async () => {
    deployment = await Deployment.start({
      replicas: 2,
      checkpoint: { lease_ms: LEASE_MS, interval_ms: 50 },
      resume: { salvage_after_ms: 3000 },
    });
    const { holdfast: dying } = deployment;
    living = deployment.other;
    for (const [question, plan] of Object.entries(PLANS)) {
      deployment.plan(question, plan);
      const request = streamRequest(MODEL, question, { tools: TOOLS });
      const client = await StreamClient.open(dying.url, request, { 'holdfast-thread': question });
      clients.set(question, client);
      void client.read();
    }
    await vi.waitFor(
      async () => {
        for (const question of Object.keys(PLANS).filter((name) => name !== 'completed'))
          expect(await statusOf(living, runOf(question))).toMatchObject({ unfinished_calls: UNFINISHED });
        const { tool_calls, unfinished_calls } = await statusOf(living, runOf('completed'));
        expect([tool_calls.length, unfinished_calls]).toEqual([2, []]);
      },
      { timeout: NOTED_MS, interval: 100 },
    );
    await dying.kill('SIGKILL');
  }, 60_000);
  afterAll(() => deployment.close());

  test('its run names the call to its owner', async () => {
    expect(await statusOf(living, runOf('alone'))).toMatchObject({
      status: 'running',
      unfinished_calls: UNFINISHED,
    });
    expect(await statusOf(living, runOf('beside'))).toMatchObject({
      tool_calls: [{ id: BREST.id }],
      unfinished_calls: UNFINISHED,
    });
    expect(await statusOf(living, runOf('completed'))).toMatchObject({
      tool_calls: [{ id: LORIENT.id }, { id: BREST.id }],
      unfinished_calls: [],
    });
  });

  /** Repeats the request with its run id. */
  async function comeBack(question: string): Promise<string> {
    const request = streamRequest(MODEL, question, { tools: TOOLS });
    const response = await post(living.url, request, { 'holdfast-run-id': runOf(question) });
    return response.text();
  }

  test('a replica that takes it over has the call made again', async () => {
    expect(await comeBack('taken over')).toContain('data: [DONE]');
    const [, rest] = deployment.requests('taken over');
    expect(JSON.stringify(rest?.body)).toContain(
      `Your call to \`${LORIENT.name}\` was cut off and did not run: make it again, in full.`,
    );
    await living.logged((line) => line.msg === 'run ended' && line.run === runOf('taken over'));
    expect(await statusOf(living, runOf('taken over'))).toMatchObject({
      status: 'complete',
      tool_calls: [{ name: LORIENT.name }],
      unfinished_calls: [],
    });
  });

  test('once it is salvaged, too, and the next request of its thread tells the model', async () => {
    for (const question of THREADS)
      await living.logged((line) => line.msg === 'run salvaged' && line.run === runOf(question));
    expect(await statusOf(living, runOf('alone'))).toMatchObject({
      status: 'recovered_from_partial',
      unfinished_calls: UNFINISHED,
    });
    const told = await Promise.all(
      THREADS.map(async (thread) => {
        const question = `${thread}, then`;
        deployment.plan(question, SHORT);
        await (await post(living.url, streamRequest(MODEL, question), { 'holdfast-thread': thread })).text();
        const [system] = completionRequest(deployment.requests(question)[0]?.body)?.messages ?? [];
        const [, json = '{}'] = /^last_partial_recovery: (\{.*\}) Your/.exec(String(system?.content)) ?? [];
        const { settled_calls = [], unfinished_calls = [] } = JSON.parse(json) as Record<
          string,
          { id: string }[]
        >;
        return [settled_calls.map(({ id }) => id), unfinished_calls.map(({ id }) => id)];
      }),
    );
    expect(told).toEqual([
      [[], [LORIENT.id]],
      [[BREST.id], [LORIENT.id]],
      [[LORIENT.id, BREST.id], []],
    ]);
  });

  test('the results of the calls that were delivered beside it tell the model', async () => {
    const bring = async (question: string, calls: readonly (typeof BREST)[]) => {
      deployment.plan(`${question}, results`, SHORT);
      const messages = [
        { role: 'user', content: `${question}, results` },
        {
          role: 'assistant',
          content: 'I look.',
          tool_calls: calls.map(({ id, name, arguments: json }) => ({
            id,
            type: 'function',
            function: { name, arguments: json },
          })),
        },
        ...calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'High water at noon.' })),
      ];
      const request = { ...streamRequest(MODEL, '', { tools: TOOLS }), messages };
      await (await post(living.url, request)).text();
      return JSON.stringify(deployment.requests(`${question}, results`)[0]?.body);
    };
    const hint = JSON.stringify(lostCallText([LORIENT.name])).slice(1, -1);
    expect(await comeBack('taken over, settled')).toContain('"finish_reason":"tool_calls"');
    expect(await bring('taken over, settled', [QUIMPER])).toContain(hint);
    expect(await bring('beside', [BREST])).toContain(hint);
    expect(await bring('completed', [LORIENT, BREST])).not.toContain('My connection dropped');
  });
});
