import type { JournalRecord } from '../../src/checkpoint/journal.ts';
import { MemoryRuns } from '../../src/checkpoint/memory/runs.ts';
import { ownerOf } from '../../src/checkpoint/owner.ts';
import type { Lease, RunId } from '../../src/checkpoint/store.ts';
import type { Follow } from '../../src/proxy/api/api-context.ts';
import type { Reader } from '../../src/proxy/resume/reader.ts';
import { HEADER_RECORD, newRunId, textRecord } from '../checkpoint/fixtures.ts';
import {
  NO_UPSTREAM_URL,
  type Replica,
  type ReplicaParts,
  ReplicaStore,
  SECRET,
  startReplica,
  upstreamsAt,
} from '../replica.ts';

export const UPSTREAM = upstreamsAt(NO_UPSTREAM_URL, { api_key: 'sk-configured' });
export const CREDENTIAL = { authorization: 'Bearer the owner' };
export const STRANGER = { authorization: 'Bearer a stranger' };
export const OWNER = ownerOf(SECRET, CREDENTIAL);
export const BODY = JSON.stringify({
  model: 'gpt-test',
  stream: true,
  messages: [{ role: 'user', content: 'hi' }],
});

/** A replica, and what matters of another one: the store in which it began the runs. */
export interface Deployment {
  readonly replica: Replica;
  readonly other: ReplicaStore;
  readonly readers: Reader[];
  /** Begins a run of the other replica; {@link fetchRun} asks about it. */
  begin(records: readonly JournalRecord[]): Promise<Lease>;
}

/** Records the readers, and sends each of them one event. */
export const notingFollow =
  (readers: Reader[]): Follow =>
  async (reader, stored, client) => {
    readers.push(reader);
    client.open({ 'holdfast-run-id': reader.run });
    client.end(`data: after ${reader.cursor} of ${stored.seq}\n\n`);
    return 'replayed';
  };

export async function deploy(
  parts: ReplicaParts = {},
  tree: Record<string, unknown> = {},
): Promise<Deployment> {
  const runs = new MemoryRuns();
  const readers: Reader[] = [];
  const checkpoint = { store: 'memory', lease_ms: 300, ...(tree.checkpoint as object | undefined) };
  const replica = await startReplica(
    { ...UPSTREAM, ...tree, checkpoint },
    { follow: notingFollow(readers), ...parts, runs },
  );
  const other = new ReplicaStore(runs);
  return {
    replica,
    other,
    readers,
    async begin(records) {
      const lease = await other.acquire(newRunId(), OWNER);
      await other.append(lease, records);
      return lease;
    },
  };
}

export const fetchRun = (replica: Replica, path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${replica.api}/holdfast/v1/runs/${path}`, {
    ...init,
    headers: { ...CREDENTIAL, ...(init.headers as Record<string, string> | undefined) },
  });

export const resume = (replica: Replica, run: RunId, body: unknown, headers: Record<string, string> = {}) =>
  fetchRun(replica, `${run}/resume`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

export const errorOf = async (response: Response) => {
  const { error } = (await response.json()) as { error: { code: string; param: string | null } };
  return { status: response.status, code: error.code, param: error.param };
};

export const textRun = [HEADER_RECORD, textRecord(0, 'Hel', 'lo')];

export const postChat = (replica: Replica, headers: Record<string, string> = {}, body: string = BODY) =>
  fetch(`${replica.api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...CREDENTIAL, ...headers },
    body,
  });
