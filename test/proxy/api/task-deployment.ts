import { expect } from 'vitest';
import { MemoryRuns } from '../../../src/checkpoint/memory/runs.ts';
import { relay } from '../../../src/proxy/run/relay.ts';
import { chunkEvent, startProvider, streamOneWord } from '../../http-peer.ts';
import { type Replica, startReplica, upstreamsAt } from '../../replica.ts';
import { BODY, CREDENTIAL, postChat } from '../run-deployment.ts';

/**
 * How the provider treats the next requests: it answers with one word, starts an answer, refuses, or breaks off one
 * answer and continues it.
 */
export type Manner = 'word' | 'begins' | 'refuses' | 'breaks';

export interface TaskDeployment {
  readonly replica: Replica;
  readonly other: Replica;
  readonly runs: MemoryRuns;
  readonly provider: {
    manner: Manner;
    requests: number;
    /** Completes the answer that was started last. */
    finish(): void;
  };
}

/** Two replicas with a shared store. `tree`: more of their configuration. */
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

/** Sends the `nth` distinct request of a task. */
export const askStep = (
  replica: Replica,
  nth: number,
  task = 'T23',
  headers: Record<string, string> = CREDENTIAL,
): Promise<Response> =>
  postChat(replica, { ...headers, 'holdfast-task': task }, BODY.replace('"hi"', `"hi ${nth}"`));

/** Complete answers to `count` distinct requests of the task, one after the other. */
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
