import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { Finding } from '../../src/doctor/finding.ts';

const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

export interface Diagnosis {
  readonly status: number | null;
  /** Everything that the process printed. */
  readonly output: string;
  /** The findings about one subject, by name of the check. */
  of(subject: string): Readonly<Record<string, Finding>>;
}

/**
 * Runs `holdfast doctor --json` in its own process. `tree` is the content of the configuration file; by default, ports
 * are free ones and the store is memory.
 */
export async function diagnose(
  tree: Record<string, unknown>,
  words: readonly string[] = [],
  environment: Record<string, string> = {},
): Promise<Diagnosis> {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-'));
  try {
    const file = join(directory, 'holdfast.yaml');
    const preset = { listen: { port: 0, admin_port: 0 }, checkpoint: { store: 'memory' } };
    // Every JSON document is a YAML document.
    writeFileSync(file, JSON.stringify({ ...preset, ...tree }));
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    const child = spawn(process.execPath, [CLI, 'doctor', '--json', '--config', file, ...words], {
      cwd: directory,
      env: { PATH, NODE_COMPILE_CACHE, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [stdout, stderr, [status]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'exit') as Promise<[number | null]>,
    ]);
    if (stdout === '') throw new Error(`doctor has found nothing: ${stderr}`);
    const { checks } = JSON.parse(stdout) as { checks: Finding[] };
    const of = (subject: string) =>
      Object.fromEntries(
        checks.filter((check) => check.subject === subject).map((check) => [check.name, check]),
      );
    return { status, output: stdout + stderr, of };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** The model's answer to the doctor's question. */
export const COUNT =
  'one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, fourteen, fifteen, sixteen, seventeen, eighteen, nineteen, twenty';
