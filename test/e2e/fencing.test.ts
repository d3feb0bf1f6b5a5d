import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { Deployment } from './deployment.ts';
import { payloadsOf } from './stream-client.ts';
import { ALL_OF_TALK, beginTalk, fetchRun, RESUMABLE, resumeTalk, saidBy } from './talk.ts';

const LEASE_MS = 1000;

test.each(['interval', 'write_ahead'] as const)(
  'a replica that was stopped for longer than its lease finds its run taken, and says nothing more (%s)',
  async (durability) => {
    const deployment = await Deployment.start({
      replicas: 2,
      checkpoint: { lease_ms: LEASE_MS, durability },
    });
    onTestFinished(() => deployment.close());
    const { pid } = deployment.holdfast;
    const client = await beginTalk(deployment, 'stopped', RESUMABLE);
    process.kill(pid, 'SIGSTOP');
    // Events already in flight to the client may still arrive.
    await pause(LEASE_MS);
    const had = client.payloads;
    const other = await resumeTalk(deployment.other, client, had.length);
    const rest = payloadsOf(await other.text());
    process.kill(pid, 'SIGCONT');
    await client.ended();

    expect(saidBy([...had, ...rest])).toEqual(ALL_OF_TALK);
    // With `write_ahead`, events stored before the stop are part of the journal, and may be delivered once the store's
    // reply is read.
    const told = durability === 'write_ahead' ? [...had, ...rest].slice(0, client.payloads.length) : had;
    expect(client.payloads).toEqual(told);
    expect(client.payloads.length).toBeLessThan(had.length + rest.length);
    await deployment.holdfast.logged(({ msg, outcome }) => msg === 'run ended' && outcome === 'superseded');
    const status = await (await fetchRun(deployment.other, client.run)).json();
    expect(status).toMatchObject({ status: 'complete', takeovers: 1, cursor: had.length + rest.length });
  },
);
