import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Seal } from '../seal.ts';
import type { Holder, RunId } from '../store.ts';
import type { Opening, RunImage } from './file-format.ts';
import { decodeOpening, decodeRun } from './file-format.ts';
import { holderOf, signOfLife } from './file-holder.ts';
import { finishedName, partialName } from './file-names.ts';
import { isCode } from './file-system.ts';

/** How often a reader starts again because a run was finished while it read. */
const READS_MAX = 5;

/** The files of one run: a finished one, or one per epoch. */
interface RunFiles {
  readonly contents: readonly Buffer[];
  readonly finished_at_ms?: number;
}

export interface FoundRun {
  /** When the file of a finished run was last modified; absent while there are only files of epochs. */
  readonly finished_at_ms?: number;
  /** Undefined when the first file has no readable opening line. */
  readonly image: RunImage | undefined;
}

/** Reads a run from an event on, whoever is writing it at the time. */
export async function readRun(
  dir: string,
  run: RunId,
  seal: Seal | undefined,
  from: number,
): Promise<FoundRun | undefined> {
  for (let attempt = 0; attempt < READS_MAX; attempt++) {
    const files = (await readFinished(dir, run)) ?? (await readPartials(dir, run));
    if (!files) continue;
    const { contents, ...found } = files;
    return { ...found, image: decodeRun(contents, run, seal, from) };
  }
  return undefined;
}

/** The opening line of a finished run. */
export async function readFinishedOpening(dir: string, run: RunId): Promise<Opening | undefined> {
  const [bytes] = (await readFinished(dir, run))?.contents ?? [];
  return bytes && decodeOpening(bytes, run);
}

/** Who holds the run that was found. */
export async function readHolder(
  dir: string,
  run: RunId,
  { image, finished_at_ms }: FoundRun,
  lease_ms: number,
): Promise<Holder> {
  const isRunning = image && !image.end && finished_at_ms === undefined;
  const sign = isRunning ? signOfLife(run, image.epoch, image.opening) : undefined;
  if (sign === undefined) return { state: 'released' };
  return holderOf((await statIfExists(join(dir, sign)))?.mtimeMs, lease_ms);
}

async function readFinished(dir: string, run: RunId): Promise<RunFiles | undefined> {
  const path = join(dir, finishedName(run));
  const bytes = await ifExists(readFile(path));
  const stats = bytes && (await statIfExists(path));
  return stats && { contents: [bytes], finished_at_ms: stats.mtimeMs };
}

/** Undefined when the files were replaced by a finished one meanwhile, or never were there. */
async function readPartials(dir: string, run: RunId): Promise<RunFiles | undefined> {
  const contents: Buffer[] = [];
  for (let epoch = 1; ; epoch++) {
    const bytes = await ifExists(readFile(join(dir, partialName(run, epoch))));
    if (!bytes) break;
    contents.push(bytes);
  }
  const first = await statIfExists(join(dir, partialName(run, 1)));
  return first && contents.length > 0 ? { contents } : undefined;
}

const statIfExists = (path: string) => ifExists(stat(path));

async function ifExists<Result>(reading: Promise<Result>): Promise<Result | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}
