import { describe, expect, onTestFinished, test } from 'vitest';
import { allCases, chosen } from '../../packages/conformance/src/cases.ts';
import type { Verdict } from '../../packages/conformance/src/judge.ts';
import { Provider } from '../../packages/conformance/src/provider/provider.ts';
import { runCases } from '../../packages/conformance/src/run.ts';
import { chunk, type OnBreak, startBadGateway } from './bad-gateway.ts';

const SILENCE_MS = 3000;
const IDLE_MS = 1000;
const HANG_MS = 10_000;
const NO_HEADERS = { chat: {}, messages: {}, responses: {} };

async function verdictOn(id: string, onBreak: OnBreak, hang_ms = HANG_MS): Promise<Verdict | undefined> {
  const cases = chosen(allCases({ http2: false, kill: false }), [id]).filter((each) => each.id === id);
  const options = {
    seed: 1,
    host: '127.0.0.1',
    port: 0,
    silence_ms: SILENCE_MS,
    prefill: 'continues',
  } as const;
  const provider = await Provider.start({ cases, ...options });
  const gateway = await startBadGateway(provider.port, onBreak);
  onTestFinished(async () => {
    await gateway.close();
    await provider.close();
  });
  const models = { chat: 'm', messages: 'm', responses: 'm' };
  const asked = { root: gateway.root, api_key: 'k', models, headers: NO_HEADERS };
  const clocks = { hang_ms, idle_ms: IDLE_MS };
  const results = await runCases({ cases, seed: 1, provider, gateway: asked, clocks, concurrency: 1 });
  return results[0]?.verdict;
}

const honest: OnBreak = ({ response }) => response.destroy();
const truncates: OnBreak = ({ response }) => response.end();
const pretends: OnBreak = ({ response }) => response.end(`${chunk({}, 'stop')}data: [DONE]\n\n`);
const restarts: OnBreak = ({ again }) => again('start');
const continues: OnBreak = ({ again }) => again('rest');
const loses: OnBreak = ({ again }) => again('rest', (_event, nth) => nth !== 1);
const hangs: OnBreak = () => {};
const tells: OnBreak = ({ response, again }) => {
  response.write(chunk({ content: ' [One moment.] ' }));
  return again('rest');
};
const reports: OnBreak = ({ response }) =>
  response.end(
    `data: ${JSON.stringify({ error: { message: 'The provider left.', type: 'server_error' } })}\n\n`,
  );

describe('the suite', () => {
  test.each([
    ['acquits a gateway that breaks with its provider', 'text/reset', honest, 'honest_error'],
    ['acquits a gateway that reports the break', 'text/reset', reports, 'honest_error'],
    ['acquits a gateway that continues', 'text/reset', continues, 'exact'],
    [
      'acquits a gateway that asks again for a call that was not shown',
      'text/clean_close',
      continues,
      'exact',
    ],
    ['convicts a gateway that ends where the provider broke', 'text/reset', truncates, 'silent_truncation'],
    ['convicts a gateway that calls a part the whole', 'text/reset', pretends, 'silent_truncation'],
    ['convicts a gateway that ends inside of a call', 'in_call/reset', truncates, 'broken_tool_call'],
    ['convicts a gateway that gives half a call a proper end', 'in_call/reset', pretends, 'broken_tool_call'],
    ['convicts a gateway that shows half a call and then all of it', 'in_call/reset', restarts, 'duplicate'],
    ['convicts a gateway that leaves out the end', 'settled_call/reset', truncates, 'wrong_end'],
    ['convicts a gateway that shows the answer again', 'text/reset', restarts, 'duplicate'],
    ['convicts a gateway that loses text at the seam', 'text/reset', loses, 'lost_text'],
    ['convicts a gateway that adds words of its own', 'text/reset', tells, 'altered_text'],
    ['acquits a gateway that passes an error event on', 'text/error_event', truncates, 'honest_error'],
  ] as const)('%s', async (_name, id, onBreak, verdict) => {
    expect(await verdictOn(`chat/streaming/${id}`, onBreak)).toBe(verdict);
  });

  test('convicts a gateway that hangs', async () => {
    expect(await verdictOn('chat/streaming/text/reset', hangs, 4000)).toBe('hang');
  });

  test('convicts a gateway that is as silent as its provider', async () => {
    expect(await verdictOn('chat/streaming/text/silence_within', honest)).toBe('idle_timeout');
  });

  test('takes a wire that the gateway does not have for unsupported', async () => {
    expect(await verdictOn('responses/streaming/text/none', honest)).toBe('unsupported');
  });
});
