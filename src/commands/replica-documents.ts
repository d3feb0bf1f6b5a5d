import type { RunId } from '../checkpoint/store.ts';
import { isObject } from '../lib/json.ts';
import { type RunDetail, type RunsDocument, STATUS_VERSION } from '../status/snapshot.ts';
import { CommandFailure } from './command.ts';
import type { ReplicaPort } from './replica-port.ts';

/** `GET /runs` of the admin port. */
export const readRuns = (admin: ReplicaPort): Promise<RunsDocument> =>
  readStatus<RunsDocument>(admin, '/runs');

/** `GET /runs/{id}` of the admin port. */
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

/** Throws a {@link CommandFailure}: the document of another version would be misread. */
export function requireVersion(version: unknown, { root }: ReplicaPort): void {
  if (version === STATUS_VERSION) return;
  throw new CommandFailure(
    `the replica at ${root} is of another release: its status has version ${String(version)}, and this command reads ${STATUS_VERSION}.`,
  );
}

/** What this command reads of `GET` and `DELETE /holdfast/v1/runs/{id}`; a damaged journal leaves fields `null`. */
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

/** A run as its owner is shown it. `DELETE` cancels it first. */
export async function askForRun(
  api: ReplicaPort,
  run: RunId,
  method: 'GET' | 'DELETE' = 'GET',
): Promise<RunStatusDocument> {
  const document = await api.json(`/holdfast/v1/runs/${run}`, method);
  if (
    document.object !== 'holdfast.run' ||
    !Array.isArray(document.segments) ||
    !document.segments.every(isObject)
  )
    throw new Error(`${api.root} describes the run in a format that this release does not know`);
  return document as unknown as RunStatusDocument;
}
