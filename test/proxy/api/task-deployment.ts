import { expect } from 'vitest';
import { MemoryRuns } from '../../../src/checkpoint/memory/runs.ts';
import { relay } from '../../../src/proxy/run/relay.ts';
import { chunkEvent, startProvider, streamOneWord } from '../../http-peer.ts';
import { type Replica, startReplica, upstreamsAt } from '../../replica.ts';
import { BODY, CREDENTIAL, postChat } from '../run-deployment.ts';

/**
 * What the provider does with the requests that come next: it answers with one word, begins to answer, refuses, or breaks off one
 * answer and continues.
 */
export type Manner = 'word' | 'begins' | 'refuses' | 'breaks';

export interface TaskDeployment {
  readonly replica: Replica;
  readonly other: Replica;
  readonly runs: MemoryRuns;
  readonly provider: {
    manner: Manner;
    requests: number;
    /** Brings the answer to its end that was begun last. */
    finish(): void;
  };
}

/** Two replicas that share what they store. `tree`: of their configuration. */
export async function deployTasks(tree: Record<string, unknown> = {}): Promise<TaskDeployment> {
  const provider: TaskDeployment['provider'] = { manner: 'word', requests: 0, finish: () => {} };
  const root = await startProvider((request, response) => {
    request.resume();
    provider.requests++;
    if (provider.manner === 'word') streamOneWord(response, 'kelp');
    else if (provider.manner === 'refuses') response.writeHead(400).end('{"error":{"message":"no"}}');
    else {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(chunkEvent({ role: 'assistant', content: 'kel' }));
      provider.finish = () => void response.end(`${chunkEvent({}, 'stop')}data: [DONE]\n\n`);
      if (provider.manner !== 'breaks') return;
      provider.manner = 'word';
      setImmediate(() => response.destroy());
    }
  });
  const runs = new MemoryRuns();
  const start = () => startReplica({ ...upstreamsAt(`${root}/v1`), ...tree }, { relay, runs });
  const [replica, other] = await Promise.all([start(), start()]);
  return { replica, other, runs, provider };
}

/** The request of a task that is the n-th of those that differ. */
export const askStep = (
  replica: Replica,
  nth: number,
  task = 'T23',
  headers: Record<string, string> = CREDENTIAL,
): Promise<Response> =>
  postChat(replica, { ...headers, 'holdfast-task': task }, BODY.replace('"hi"', `"hi ${nth}"`));

/** Whole answers to so many requests of the task that differ, one after the other. */
export async function answerSteps(
  replica: Replica,
  count: number,
  task?: string,
  headers?: Record<string, string>,
): Promise<readonly Response[]> {
  const all: Response[] = [];
  for (let nth = 1; nth <= count; nth++) {
    const answer = await askStep(replica, nth, task, headers);
    expect(answer.status).toBe(200);
    await answer.text();
    all.push(answer);
  }
  return all;
}

/** `path`: after `/holdfast/v1/tasks`. */
export const askTasks = (
  { api }: Replica,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = CREDENTIAL,
): Promise<Response> =>
  fetch(`${api}/holdfast/v1/tasks${path}`, {
    method,
    headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
