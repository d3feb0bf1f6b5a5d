import { callsOf, chunksOf, contentOf, finishOf } from '../provider/reading.ts';
import type { Plan } from '../provider/script.ts';
import { type Deployment, modelOf } from './deployment.ts';
import type { HoldfastProcess } from './holdfast-process.ts';
import { post, streamRequest } from './raw-client.ts';
import { callTo, TIDES, textOf } from './situations.ts';
import { payloadsOf, StreamClient } from './stream-client.ts';

export const CREDENTIAL = { authorization: 'Bearer client-key' };
/** The answer has begun by then, and is far from its end. */
const EVENTS_OF_BEGINNING = 25;
const CALLS = [callTo('call_brest', 'Brest'), callTo('call_lorient', 'Lorient')];

const words = (count: number) => Array.from({ length: count }, (_, index) => `w${index} 🌊`).join(' ');

/** A long answer that ends with two calls, from a model that accepts prefills. */
export const TALK: Plan = { parts: [{ text: words(150) }, { tools: CALLS }], delay_ms: 8, prefill: 'vllm' };

/** What an application has once it has all of {@link TALK}. */
export const ALL_OF_TALK = { text: textOf(TALK), calls: CALLS, finish: ['tool_calls'], done: true };

/** Makes the run resumable. */
export const RESUMABLE = { 'holdfast-resume': '1' };

/** What an application gets from these events. */
export function saidBy(payloads: readonly string[]) {
  const events = chunksOf(payloads.map((payload) => `data: ${payload}`).join('\n'));
  const chunks = events.filter(({ choices }) => choices !== undefined);
  return {
    text: contentOf(chunks),
    calls: callsOf(chunks),
    finish: finishOf(chunks),
    done: payloads.at(-1) === '[DONE]',
  };
}

/** The request whose answer is {@link TALK}. */
export const talkRequest = (question: string) =>
  streamRequest(modelOf('vllm'), question, { tools: [{ type: 'function', function: TIDES }] });

/** Asks a replica (by default the first one), and resolves once the beginning of the answer has arrived. */
export async function beginTalk(
  deployment: Deployment,
  question: string,
  headers: Readonly<Record<string, string>> = {},
  plan: Plan = TALK,
  replica: HoldfastProcess = deployment.holdfast,
): Promise<StreamClient> {
  deployment.plan(question, plan);
  const client = await StreamClient.open(replica.url, talkRequest(question), headers);
  await client.read();
  await client.received(EVENTS_OF_BEGINNING);
  return client;
}

/** Sends the same body again. */
export async function repeatTalk(
  replica: HoldfastProcess,
  question: string,
  headers: Readonly<Record<string, string>> = {},
) {
  const response = await post(replica.url, talkRequest(question), headers);
  return { run: response.headers.get('holdfast-run-id'), payloads: payloadsOf(await response.text()) };
}

export const fetchRun = (replica: HoldfastProcess, path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${runsOf(replica)}/${path}`, {
    ...init,
    headers: { ...CREDENTIAL, ...(init.headers as Readonly<Record<string, string>> | undefined) },
  });

/** The list of runs. `query` includes its question mark. */
export const fetchRuns = (
  replica: HoldfastProcess,
  query: string = '',
  credential: Readonly<Record<string, string>> = CREDENTIAL,
): Promise<Response> => fetch(runsOf(replica) + query, { headers: { ...credential } });

const runsOf = ({ url }: HoldfastProcess): string => `${url.replace(/\/v1$/, '')}/holdfast/v1/runs`;

/** Resumes after the client's events, and sends the last `tail` of them verbatim. */
export const resumeTalk = (
  replica: HoldfastProcess,
  { run, payloads }: StreamClient,
  tail: number,
): Promise<Response> =>
  fetchRun(replica, `${run}/resume`, {
    method: 'POST',
    headers: { ...RESUMABLE, 'content-type': 'application/json' },
    body: JSON.stringify({ cursor: payloads.length, tail: payloads.slice(payloads.length - tail) }),
  });
