import { EventEmitter } from 'node:events';
import { onTestFinished } from 'vitest';
import { keptPort } from '../../kept-port.ts';
import { startProvider } from '../../provider/provider.ts';
import type { RecordedRequest } from '../../provider/recorded-request.ts';
import type { Part } from '../../provider/script.ts';
import { HoldfastProcess } from '../holdfast-process.ts';

const LEASE_MS = 1000;

const mailTo = (to: string, id: string): Part => ({
  tool: { id, name: 'send_mail', arguments: JSON.stringify({ to }) },
});
/** The model's turns, by the number of mails sent. */
const turns = ([first = '', second = '']: readonly string[]): readonly (readonly Part[])[] => [
  [
    { text: 'I will write to Ann first, since she has the longer way to come.' },
    mailTo('ann@kelp.test', first),
  ],
  [
    { text: 'Ann is invited, and Bob comes next, who lives around the corner.' },
    mailTo('bob@kelp.test', second),
  ],
  [{ text: 'Both of them are invited, and neither of them has had more than one mail.' }],
];

export const turnOf = ({ body }: RecordedRequest): number => {
  const { messages } = body as { readonly messages: readonly { readonly role: string }[] };
  return messages.filter(({ role }) => role === 'tool').length;
};

export interface MailTaskOptions {
  /** Delay between two tokens; 2 by default. */
  readonly delay_ms?: number;
  /**
   * The ids of the two tool calls. By default they are the same, as some providers give the same id to the first call
   * of every answer.
   */
  readonly call_ids?: readonly [string, string];
}

/** Starts replicas on this store, and records what their provider is asked. */
export async function deployMailTask(
  store: string,
  replicas: number,
  { delay_ms = 2, call_ids = ['call_1', 'call_1'] }: MailTaskOptions = {},
) {
  const provider = await startProvider();
  const requests: RecordedRequest[] = [];
  const arrivals = new EventEmitter<{ request: [RecordedRequest] }>();
  provider.respond((request) => {
    requests.push(request);
    arrivals.emit('request', request);
    return { parts: turns(call_ids)[turnOf(request)] ?? [], delay_ms };
  });
  const ports: number[] = [];
  while (ports.length < replicas) ports.push(await keptPort(ports));
  const start = (port: number) =>
    HoldfastProcess.start({
      secret: 'the secret of all replicas',
      listen: { port, admin_port: 0 },
      upstreams: { provider: { base_url: provider.url } },
      recovery: { backoff_ms: 1 },
      checkpoint: { store, lease_ms: LEASE_MS },
    });
  const processes = await Promise.all(ports.map(start));
  onTestFinished(async () => {
    await Promise.all(processes.map((replica) => replica.close()));
    await provider.close();
  });
  /** Kills a replica. Resolves once its replacement listens. */
  const replace = async (slot: number) => {
    await processes[slot]?.kill('SIGKILL');
    processes[slot] = await start(ports[slot] ?? 0);
  };
  const isOf = (task: string, { body }: RecordedRequest) => JSON.stringify(body).includes(task);
  const ofTask = (task: string) => requests.filter((request) => isOf(task, request));
  return { urls: processes.map(({ url }) => url), ofTask, isOf, arrivals, replace };
}
