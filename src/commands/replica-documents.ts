import type { RunId } from '../checkpoint/store.ts';
import { isObject } from '../lib/json.ts';
import { type RunDetail, type RunsDocument, STATUS_VERSION } from '../status/snapshot.ts';
import { CommandFailure } from './command.ts';
import type { ReplicaPort } from './replica-port.ts';

/** `GET /runs` on the admin port. */
export const readRuns = (admin: ReplicaPort): Promise<RunsDocument> =>
  readStatus<RunsDocument>(admin, '/runs');

/** `GET /runs/{id}` on the admin port. */
export const readRun = (admin: ReplicaPort, run: RunId): Promise<RunDetail> =>
  readStatus<RunDetail>(admin, `/runs/${run}`);

async function readStatus<Document extends { readonly version: number }>(
  admin: ReplicaPort,
  path: string,
): Promise<Document> {
  const document = await admin.json(path);
  requireVersion(document.version, admin);
  return document as unknown as Document;
}

/** Throws a {@link CommandFailure}, because a document of another version would be misread. */
export function requireVersion(version: unknown, { root }: ReplicaPort): void {
  if (version === STATUS_VERSION) return;
  throw new CommandFailure(
    `the replica at ${root} is of another release: its status has version ${String(version)}, and this command reads ${STATUS_VERSION}.`,
  );
}

/** The fields used from `GET` and `DELETE /holdfast/v1/runs/{id}`. A damaged journal leaves fields `null`. */
export interface RunStatusDocument {
  readonly id: string;
  readonly wire: string | null;
  readonly status: string;
  readonly created_at: number | null;
  readonly model: string | null;
  readonly upstream: string | null;
  readonly cursor: number;
  readonly epoch: number;
  readonly takeovers: number;
  readonly holder: string;
  readonly text: string;
  readonly tool_calls: readonly { readonly name: string; readonly arguments: string }[];
  readonly segments: readonly RunStatusSegment[];
  readonly finish_reason: string | null;
  readonly partial: boolean;
  readonly end: { readonly status: string; readonly at: number; readonly cause: string | null } | null;
}

export interface RunStatusSegment {
  readonly attempt: number | null;
  readonly upstream: string | null;
  readonly model: string | null;
  readonly mode: string;
  readonly plan: string | null;
  readonly cause: string | null;
  readonly characters: Readonly<Record<string, number>>;
}

/** The owner's view of a run. `DELETE` cancels it first. */
export async function askForRun(
  api: ReplicaPort,
  run: RunId,
  method: 'GET' | 'DELETE' = 'GET',
): Promise<RunStatusDocument> {
  const document = await api.json(`/holdfast/v1/runs/${run}`, method);
  const { object, segments } = document;
  requireObject(
    object === 'holdfast.run' && Array.isArray(segments) && segments.every(isObject),
    'the run',
    api,
  );
  return document as unknown as RunStatusDocument;
}

/** The fields used from the owner's view of a task. */
export interface TaskDocument {
  readonly id: string;
  readonly status: string;
  readonly status_since: number | null;
  readonly reason: string | null;
  readonly created_at: number | null;
  readonly parent: string | null;
  readonly description: string | null;
  readonly deadline_at: number | null;
  readonly budget_tokens: number | null;
  readonly steps: number;
  readonly steps_total: number | null;
  /** Absent in lists. */
  readonly usage?: { readonly total_tokens: number };
  readonly last_step: StepDocument | null;
  readonly diverged: { readonly step: number; readonly changed: readonly string[] | null } | null;
}

export interface StepDocument {
  readonly number: number;
  readonly run: {
    readonly id: string;
    readonly status: string;
    readonly model: string | null;
    readonly created_at: number | null;
    readonly end: { readonly at: number; readonly cause: string | null } | null;
  } | null;
}

/** One page of tasks or of a task's steps. */
export interface ListDocument<Entry> {
  readonly data: readonly Entry[];
  readonly has_more: boolean;
  readonly next: string | null;
}

const TASKS = '/holdfast/v1/tasks';

/** `verb`: an action to perform first. */
export async function askForTask(
  api: ReplicaPort,
  task: string,
  verb?: { readonly verb: string; readonly reason: string | undefined },
): Promise<TaskDocument> {
  const path = `${TASKS}/${encodeURIComponent(task)}`;
  const { reason } = verb ?? {};
  const document = verb
    ? await api.json(`${path}/${verb.verb}`, 'POST', { ...(reason !== undefined && { reason }) })
    : await api.json(path);
  requireObject(document.object === 'holdfast.task', 'the task', api);
  return document as unknown as TaskDocument;
}

export async function deleteTask(api: ReplicaPort, task: string): Promise<Record<string, unknown>> {
  return api.json(`${TASKS}/${encodeURIComponent(task)}`, 'DELETE');
}

/** `query`: the API's query string. */
export async function listTasks(api: ReplicaPort, query: string): Promise<ListDocument<TaskDocument>> {
  return listIn(api, `${TASKS}${query}`);
}

export async function listSteps(
  api: ReplicaPort,
  task: string,
  query: string,
): Promise<ListDocument<StepDocument>> {
  return listIn(api, `${TASKS}/${encodeURIComponent(task)}/steps${query}`);
}

/** All entries in order, page by page. `transcript`: the answers of the steps. `calls`: the tool calls. */
export async function* entriesOf(
  api: ReplicaPort,
  task: string,
  list: 'transcript' | 'calls',
): AsyncGenerator<object> {
  for (let after: string | null = '0'; after !== null; ) {
    const page: ListDocument<object> = await listIn(
      api,
      `${TASKS}/${encodeURIComponent(task)}/${list}?after=${after}`,
    );
    yield* page.data;
    after = page.next;
  }
}

async function listIn<Entry>(api: ReplicaPort, path: string): Promise<ListDocument<Entry>> {
  const document = await api.json(path);
  requireObject(document.object === 'list' && Array.isArray(document.data), 'its tasks', api);
  return document as unknown as ListDocument<Entry>;
}

function requireObject(isKnown: boolean, what: string, { root }: ReplicaPort): void {
  if (!isKnown) throw new Error(`${root} describes ${what} in a format that this release does not know`);
}
