import { cpSync, readdirSync, symlinkSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './run.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** What a build needs, and what must not get into the package. */
const DIRECTORIES = ['clients', 'src', 'scripts', 'docs', 'test', 'demo'];

/** What `npm pack` tells of the package. */
export interface Packed {
  /** The tarball's path. */
  readonly tarball: string;
  /** Of the tarball, bytes. */
  readonly size: number;
  /** Paths in the package. */
  readonly files: readonly string[];
}

/** A copy of the repository as it is, below `directory`, that was never built: the one in use stays as it is. */
export function cloneRepository(directory: string): string {
  const clone = join(directory, 'clone');
  const atRoot = readdirSync(ROOT, { withFileTypes: true }).filter((entry) => entry.isFile());
  for (const name of [...DIRECTORIES, ...atRoot.map((entry) => entry.name)]) {
    cpSync(join(ROOT, name), join(clone, name), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
  // Old enough for the scripts not to install anything: that would be where the link leads.
  utimesSync(join(clone, 'package-lock.json'), 1, 1);
  return clone;
}

/** Packs the package at `source` into a tarball at `directory`. */
export async function pack(source: string, directory: string): Promise<Packed> {
  const words = ['pack', '--json', '--pack-destination', directory];
  const [packed] = JSON.parse(await run('npm', words, { cwd: source }));
  return {
    tarball: join(directory, packed.filename),
    size: packed.size,
    files: packed.files.map(({ path }: { path: string }) => path),
  };
}
