// A process that performs the calls it receives on a shared directory. Started by file-processes.test.ts, with the
// directory as its argument.
import { FileStore } from '../../../src/checkpoint/file/file-store.ts';
import type { Lease, RunId } from '../../../src/checkpoint/store.ts';
import { HEADER_RECORD, OWNER, textRecord } from '../fixtures.ts';
import { LEASE_MS, type ReplicaCall } from './replica-calls.ts';

const [dir = ''] = process.argv.slice(2);
const onError = (error: Error) => {
  throw error;
};
const store = new FileStore({ dir, ttl_ms: 3_600_000, lease_ms: LEASE_MS, onError });
let lease: Lease | undefined;

const calls = {
  async begin(run: RunId) {
    lease = await store.acquire(run, OWNER);
    await store.append(lease, [HEADER_RECORD, textRecord(0, 'a')]);
  },
  async follow(runs: readonly RunId[]) {
    const won: RunId[] = [];
    for (const run of runs) {
      try {
        const followed = await store.acquire(run, OWNER, 1);
        await store.append(followed, [textRecord(1, `<${process.pid}>`)]);
        won.push(run);
      } catch (error) {
        if (!String(error).endsWith('taken')) throw error;
      }
    }
    return won;
  },
  async append(seq: number) {
    if (!lease) throw new Error('nothing was begun');
    try {
      await store.append(lease, [textRecord(seq, 'x')]);
      return {};
    } catch (error) {
      return { refused: (error as Error).name };
    }
  },
  async wedge(for_ms: number) {
    const until_ms = performance.now() + for_ms;
    while (performance.now() < until_ms);
  },
};

process.on('message', ({ kind, argument }: ReplicaCall) => {
  void calls[kind](argument as never).then((answer) => process.send?.({ answer }));
});
process.send?.({ answer: 'ready' });
