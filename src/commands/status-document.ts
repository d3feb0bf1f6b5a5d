import type { RunId } from '../checkpoint/store.ts';
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

/** What another version says would be misread. */
export function requireVersion(version: unknown, { root }: ReplicaPort): void {
  if (version === STATUS_VERSION) return;
  throw new CommandFailure(
    `the replica at ${root} is of another release: its status has version ${String(version)}, and this command reads ${STATUS_VERSION}.`,
  );
}
