import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Provider, startProvider } from '../../provider/provider.ts';
import type { RecordedRequest } from '../../provider/recorded-request.ts';
import type { Part } from '../../provider/script.ts';
import { HoldfastProcess } from '../holdfast-process.ts';

const AGENT = fileURLToPath(new URL('mail-agent.ts', import.meta.url));
/** A prime, so that the places are different ones in every step. */
const CHUNKS_BETWEEN_KILLS = 7;

const mailTo = (id: string, to: string): Part => ({
  tool: { id, name: 'send_mail', arguments: JSON.stringify({ to }) },
});
/** What the model says after that many mails. */
const TURNS: readonly (readonly Part[])[] = [
  [
    { text: 'I will write to Ann first, since she has the longer way to come.' },
    mailTo('call_1', 'ann@kelp.test'),
  ],
  [
    { text: 'Ann is invited, and Bob comes next, who lives around the corner.' },
    mailTo('call_1', 'bob@kelp.test'),
  ],
  [{ text: 'Both of them are invited, and neither of them has had more than one mail.' }],
];

interface Saying {
  readonly chunk?: true;
  readonly mail?: string;
  readonly arguments?: string;
  readonly messages?: readonly object[];
}

/** Runs the agent once. `chunks`: after so many of an answer it is killed. */
async function runAgent(
  url: string,
  task: string,
  chunks = Number.POSITIVE_INFINITY,
): Promise<readonly Saying[]> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', AGENT, url, task], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const said: Saying[] = [];
  const exited = once(child, 'exit');
  let came = 0;
  for await (const line of createInterface(child.stdout)) {
    const saying = JSON.parse(line) as Saying;
    said.push(saying);
    if (saying.chunk && ++came >= chunks) child.kill('SIGKILL');
  }
  await exited;
  return said;
}

describe.each(['memory', 'file'])('an agent whose process is killed, with the store %s', (store) => {
  let provider: Provider;
  let holdfast: HoldfastProcess;
  const requests = new Map<string, RecordedRequest[]>();

  beforeAll(async () => {
    provider = await startProvider();
    provider.respond((request) => {
      const { messages } = request.body as { messages: readonly { role: string; content: unknown }[] };
      const task = String(messages[0]?.content).split(' ').at(-1) ?? '';
      requests.set(task, [...(requests.get(task) ?? []), request]);
      const parts = TURNS[messages.filter(({ role }) => role === 'tool').length] ?? [];
      return { parts, delay_ms: 2 };
    });
    holdfast = await HoldfastProcess.start({
      upstreams: { provider: { base_url: provider.url } },
      checkpoint: { store: store === 'file' ? 'file:store' : 'memory' },
    });
  });
  afterAll(async () => {
    await holdfast.close();
    await provider.close();
  });

  test('begins anew, has every step that was answered for nothing, and pays for the rest of the one that was cut', async () => {
    const whole = await runAgent(holdfast.url, 'uncut');
    const chunks = whole.filter(({ chunk }) => chunk).length;
    expect(requests.get('uncut')).toHaveLength(TURNS.length);
    const transcript = (said: readonly Saying[], task: string) =>
      JSON.stringify(said.at(-1)?.messages).replaceAll(task, 'the task');
    const mails = new Set(whole.flatMap(({ mail, arguments: to }) => (mail ? [`${mail} ${to}`] : [])));
    expect(mails.size).toBe(2);
    for (let place = 1; place < chunks; place += CHUNKS_BETWEEN_KILLS) {
      const task = `killed-${place}`;
      const first = await runAgent(holdfast.url, task, place);
      const again = await runAgent(holdfast.url, task);
      expect(first.at(-1)?.messages).toBeUndefined();
      expect(transcript(again, task)).toBe(transcript(whole, 'uncut'));
      const made = requests.get(task) ?? [];
      // One more request for the rest of the step that was cut, if it was.
      expect(made.length, task).toBeLessThanOrEqual(TURNS.length + 1);
      const names = made.flatMap(({ headers }) => Object.keys(headers));
      expect(names.filter((name) => name.startsWith('holdfast-'))).toEqual([]);
    }
  });
});
