import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';

/** The tests find each mistake within this many histories. */
const HISTORIES = 10_000;
const FOUND_WITHIN_MS = 30 * 60_000;
const ROOT = resolve(import.meta.dirname, '../../..');

interface Mistake {
  readonly title: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** Mistakes that Holdfast once contained, each in one line. */
const MISTAKES: readonly Mistake[] = [
  {
    title: 'what the store does not confirm is delivered',
    file: 'src/proxy/run/output-gate.ts',
    from: 'return this.#proof();',
    to: 'return journal.flush().then(() => true);',
  },
  {
    title: 'a replica whose takeover was forgotten continues as if it had only lost its journal',
    file: 'src/checkpoint/redis/lease.ts',
    from: `if (token === '' && epoch > 1 && last_id !== '') throw this.fenced();`,
    to: '',
  },
  {
    title: 'a healthy stream ends because others have salvaged its run',
    file: 'src/proxy/run/regained.ts',
    from: 'if (!stored || !journal.isUntouched(stored) || isEnded(stored)) return false;',
    to: 'return false;',
  },
  {
    title: 'a client that is ahead of the log is refused',
    file: 'src/proxy/resume/reachable.ts',
    from: 'return position.cursor > seq && reachable(fork, position) ? fork : undefined;',
    to: 'return undefined;',
  },
  {
    title: 'a run that Redis remembers and its replica does not is left as it is',
    file: 'src/checkpoint/redis/store.ts',
    from: 'if (beats++ % COMPARE_EVERY_BEATS === 0) void reconciliation.compare().catch(ignore);',
    to: 'void reconciliation;',
  },
  {
    title: 'what Redis has lost of a run under way stays lost',
    file: 'src/checkpoint/redis/leases.ts',
    from: 'if (lost) await this.#restore(held, mismatch[0], lost);',
    to: 'if (lost === null) await this.#restore(held, mismatch[0], lost);',
  },
];

describe('the simulated histories', () => {
  for (const mistake of MISTAKES)
    test(`find within ${HISTORIES} that ${mistake.title}`, { timeout: FOUND_WITHIN_MS }, async () => {
      const copy = await copyWith(mistake);
      const report = await simulate(copy);
      expect(report).toContain('violation: ');
    });
});

/** Copies the sources and adds the mistake. */
async function copyWith({ file, from, to }: Mistake): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'holdfast-mistake-'));
  onTestFinished(() => rm(copy, { recursive: true }));
  for (const part of ['src', 'test', 'bench/soak/random.ts', 'package.json'])
    await cp(join(ROOT, part), join(copy, part), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const text = await readFile(join(copy, file), 'utf8');
  expect(text.split(from), `${file} has the line once`).toHaveLength(2);
  await writeFile(join(copy, file), text.replace(from, to));
  return copy;
}

async function simulate(directory: string): Promise<string> {
  const script = 'test/simulation/histories/simulate-histories.ts';
  const run = promisify(execFile)(
    process.execPath,
    [script, '--histories', String(HISTORIES), '--seed', '1', '--no-shrink'],
    {
      cwd: directory,
    },
  );
  return run.then(
    ({ stdout }) => stdout,
    ({ stdout, stderr }: { readonly stdout: string; readonly stderr: string }) => `${stdout}\n${stderr}`,
  );
}
