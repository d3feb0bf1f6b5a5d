import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Plan } from '../provider/script.ts';
import { readStream } from '../simulation/stream-reading.ts';
import { Deployment, modelOf } from './deployment.ts';
import { post, streamRequest } from './raw-client.ts';
import { callTo, TIDES } from './situations.ts';

const [BREST, LORIENT] = [callTo('call_brest', 'Brest'), callTo('call_lorient', 'Lorient')];
/** The same call, worded differently. */
const BREST_AGAIN = { ...BREST, id: 'call_again', arguments: '{ "days": 3, "port": "Brest" }' };
const PLAN: Plan = {
  parts: [{ text: 'I look.' }, { tool: BREST }, { tool: BREST_AGAIN }, { tool: LORIENT }],
  delay_ms: 1,
};

/** Processes start slowly on a busy machine. */
const START_MAX_MS = 60_000;

let deployment: Deployment;
beforeAll(async () => {
  deployment = await Deployment.start({ recovery: { drop_repeated_calls: true } });
}, START_MAX_MS);
afterAll(() => deployment.close());

test.each(['none', 'chunks', 'comments'])(
  'a call that a provider repeats is delivered once, with Holdfast-Events: %s',
  async (events) => {
    const question = `which tides, ${events}?`;
    deployment.plan(question, PLAN);
    const { url, log } = deployment.holdfast;
    const from = log.length;
    const body = streamRequest(modelOf('h1'), question, { tools: [{ type: 'function', function: TIDES }] });
    const response = await post(url, body, { 'holdfast-events': events });
    const stream = readStream(await response.text(), { live: events !== 'none' });

    expect(stream.violations).toEqual([]);
    expect(stream.toolCalls).toEqual([BREST, LORIENT]);
    expect(stream).toMatchObject({ text: 'I look.', finish: 'tool_calls', done: true });
    const cancel = {
      type: 'ToolCallCancel',
      id: 'call_again',
      name: 'tides',
      reason: 'repeated',
      attempt: 1,
    };
    expect(stream.advisories).toEqual(events === 'none' ? [] : [cancel]);
    const run = response.headers.get('holdfast-run-id');
    const dropped = ({ msg }: { readonly msg: string }) => msg === 'repeated tool calls dropped';
    expect(await deployment.holdfast.logged(dropped, from)).toMatchObject({ level: 'info', run, calls: 1 });
  },
);
