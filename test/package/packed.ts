import { cpSync, readdirSync, symlinkSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './run.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The directories that a build needs, and those that must not get into the package. */
const DIRECTORIES = ['clients', 'src', 'scripts', 'docs', 'test', 'demo'];

/** The report of `npm pack`. */
export interface Packed {
  /** The path of the tarball. */
  readonly tarball: string;
  /** The size of the tarball in bytes. */
  readonly size: number;
  /** The paths of the files in the package. */
  readonly files: readonly string[];
}

/**
 * Copies the repository to a directory below `directory`, without build output, so that the working copy isn't
 * affected.
 */
export function cloneRepository(directory: string): string {
  const clone = join(directory, 'clone');
  const atRoot = readdirSync(ROOT, { withFileTypes: true }).filter((entry) => entry.isFile());
  for (const name of [...DIRECTORIES, ...atRoot.map((entry) => entry.name)]) {
    cpSync(join(ROOT, name), join(clone, name), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
  // An old timestamp keeps the scripts from installing packages, which would end up in the linked directory.
  utimesSync(join(clone, 'package-lock.json'), 1, 1);
  return clone;
}

/** Packs the package at `source` into a tarball in `directory`. */
export async function pack(source: string, directory: string): Promise<Packed> {
  const words = ['pack', '--json', '--pack-destination', directory];
  const [packed] = JSON.parse(await run('npm', words, { cwd: source }));
  return {
    tarball: join(directory, packed.filename),
    size: packed.size,
    files: packed.files.map(({ path }: { path: string }) => path),
  };
}
