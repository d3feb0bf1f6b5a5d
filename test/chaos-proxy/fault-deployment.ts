import { onTestFinished } from 'vitest';
import { relay } from '../../src/proxy/run/relay.ts';
import { createUndiciTransport } from '../../src/proxy/upstream/undici-transport.ts';
import { type Provider, startProvider } from '../provider/provider.ts';
import { type Replica, startReplica } from '../replica.ts';
import { ARGUMENTS, TEXT } from './scripted-answer.ts';

const CALL = { tool: { id: 'call_1', name: 'dive', arguments: ARGUMENTS } };
export const ALLOWED = { faults: { allow_header: true } };

interface LogLine {
  readonly msg: string;
  readonly [field: string]: unknown;
}

export interface Deployment {
  readonly provider: Provider;
  readonly replica: Replica;
}

/** Deploys Holdfast with a provider that gives every question the same answer and continues it verbatim. */
export async function deploy(tree: object = ALLOWED): Promise<Deployment> {
  const provider = await startProvider();
  onTestFinished(() => provider.close());
  provider.respond(({ path }) => ({
    parts: [{ text: TEXT }, ...(path === '/v1/completions' ? [] : [CALL])],
    chunk: 10,
    continuation: 'obedient',
  }));
  const transport = createUndiciTransport();
  onTestFinished(() => transport.close());
  const replica = await startReplica(
    {
      upstreams: { provider: { base_url: provider.url } },
      recovery: { backoff_ms: 1, backoff_max_ms: 5, max_attempts: 6 },
      clocks: { idle_ms: 500 },
      ...tree,
    },
    { relay, transport },
  );
  return { provider, replica };
}

export const linesOf = async ({ replica }: Deployment): Promise<LogLine[]> =>
  (await replica.log())
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
