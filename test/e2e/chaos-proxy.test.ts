import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseFaults } from '../../src/chaos/grammar.ts';
import { faultOf } from '../../src/chaos/schedule.ts';
import { type Chaos, openChaos } from '../chaos-proxy/chaos.ts';
import { ARGUMENTS, TEXT } from '../chaos-proxy/scripted-answer.ts';
import { type Provider, startProvider } from '../provider/provider.ts';
import { anthropicEvents } from './clients/anthropic.ts';
import { openaiChunks } from './clients/openai.ts';
import { openaiResponses } from './clients/openai-responses.ts';
import { HoldfastProcess } from './holdfast-process.ts';

const CLIENTS = { chat: openaiChunks, responses: openaiResponses, messages: anthropicEvents };
const FAULTS = [
  ['cut', 'reset@start'],
  ['cut', 'reset@40'],
  ['cut', 'reset@tool'],
  ['cut', 'reset@end'],
  ['cut', 'close@start'],
  ['cut', 'close@40'],
  ['cut', 'close@tool'],
  ['cut', 'truncate@40'],
  ['cut', 'truncate@tool'],
  ['stall', '60m@40'],
  ['error', 'overloaded@start'],
  ['error', 'overloaded@40'],
  ['error', 'rate_limit@40'],
  ['error', 'server_error@tool'],
  ['error', '429'],
  ['error', '500'],
  ['error', '503'],
  ['error', '529'],
] as const;
const CASES = FAULTS.flatMap(([option, given]) =>
  Object.entries(CLIENTS).map(([wire, connect]) => ({ option, given, wire, connect })),
);
const modelOf = ({ given, wire }: (typeof CASES)[number]): string => `${wire} ${given}`;

const SHARE = 0.5;
const REQUESTS = 9;

/** A seed that gives the first of `REQUESTS` requests a fault, and no other. */
function seedOfFirst(): number {
  const faults = parseFaults({ cut: ['reset'], stall: [], error: [] });
  for (let seed = 0; ; seed++) {
    const isStruck = (request: number) => faultOf({ faults, share: SHARE, seed }, request) !== undefined;
    const others = Array.from({ length: REQUESTS - 1 }, (_, index) => index + 2);
    if (isStruck(1) && !others.some(isStruck)) return seed;
  }
}

describe('Holdfast in front of holdfast chaos', () => {
  const proxies = new Map<string, Chaos>();
  let provider: Provider;
  let holdfast: HoldfastProcess;

  beforeAll(async () => {
    provider = await startProvider();
    const call = { id: 'call_1', name: 'dive', arguments: ARGUMENTS };
    provider.respond(() => ({
      parts: [{ text: TEXT }, { tool: call }],
      chunk: 10,
      continuation: 'obedient',
    }));
    const seed = seedOfFirst();
    for (const each of CASES) {
      const faults = { [each.option]: [each.given], share: SHARE, seed };
      proxies.set(modelOf(each), await openChaos(provider.url, faults));
    }
    const upstreams = [...proxies].map(([model, { url }], index) => {
      // The other cases keep the default, since a busy machine may take longer than this.
      const clocks = model.includes('60m') && { clocks: { idle_ms: 300 } };
      return [`chaos-${index}`, { base_url: url, ...clocks }] as const;
    });
    holdfast = await HoldfastProcess.start({
      upstreams: Object.fromEntries(upstreams),
      routes: [...proxies.keys()].map((model, index) => ({
        model,
        targets: [{ upstream: `chaos-${index}`, model: 'm' }],
      })),
      recovery: { backoff_ms: 1, backoff_max_ms: 10 },
      checkpoint: { store: 'memory' },
    });
  });
  afterAll(async () => {
    await holdfast.close();
    await Promise.all([...proxies.values()].map((chaos) => chaos.close()));
    await provider.close();
  });

  test.each(CASES)('recovers --$option $given on $wire', async (each) => {
    const model = modelOf(each);
    const tools = [{ name: 'dive', parameters: { type: 'object', properties: {} } }];
    const answer = await each.connect(holdfast.url).ask({ model, content: 'When is the tide?', tools });
    expect(answer).toMatchObject({
      text: TEXT,
      toolCalls: [{ name: 'dive', arguments: JSON.parse(ARGUMENTS) }],
      finish: 'tool_calls',
    });
    const { totals } = proxies.get(model)?.proxy ?? {};
    expect(totals).toMatchObject({ faults: 1, missed: 0 });
  });
});
