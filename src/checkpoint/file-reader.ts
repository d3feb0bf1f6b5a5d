import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Opening, RunImage } from './file-format.ts';
import { decodeOpening, decodeRun } from './file-format.ts';
import { finishedName, partialName } from './file-names.ts';
import type { RunId } from './store.ts';

/** How often a reader starts again because a run was finished while it read. */
const READS_MAX = 5;

/** The files of one run: a finished one, or one per epoch. */
interface RunFiles {
  readonly finished: boolean;
  readonly contents: readonly Buffer[];
}

export interface FoundRun {
  readonly finished: boolean;
  /** Undefined when the first file has no readable opening line. */
  readonly image: RunImage | undefined;
}

/** Reads a run, whoever is writing it at the time. */
export async function readRun(dir: string, run: RunId): Promise<FoundRun | undefined> {
  for (let attempt = 0; attempt < READS_MAX; attempt++) {
    const files = (await readFinished(dir, run)) ?? (await readPartials(dir, run));
    if (files) return { finished: files.finished, image: decodeRun(files.contents, run) };
  }
  return undefined;
}

/** The opening line of a finished run. */
export async function readFinishedOpening(dir: string, run: RunId): Promise<Opening | undefined> {
  const [bytes] = (await readFinished(dir, run))?.contents ?? [];
  return bytes && decodeOpening(bytes, run);
}

async function readFinished(dir: string, run: RunId): Promise<RunFiles | undefined> {
  const bytes = await readIfExists(join(dir, finishedName(run)));
  return bytes && { finished: true, contents: [bytes] };
}

/** Undefined when the files were replaced by a finished one meanwhile, or never were there. */
async function readPartials(dir: string, run: RunId): Promise<RunFiles | undefined> {
  const contents: Buffer[] = [];
  for (let epoch = 1; ; epoch++) {
    const bytes = await readIfExists(join(dir, partialName(run, epoch)));
    if (!bytes) break;
    contents.push(bytes);
  }
  const first = await stat(join(dir, partialName(run, 1))).catch(() => undefined);
  return first && contents.length > 0 ? { finished: false, contents } : undefined;
}

async function readIfExists(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
