import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import type { Missing } from '../debian-program.ts';
import { pythonEnvironment } from '../e2e/python/environment.ts';
import { ROOT, type Snippet } from './pages.ts';
import { ANSWER, type StandIn } from './stand-in.ts';

const run = promisify(execFile);
const PATIENCE_MS = 100_000;
/** The SDKs refuse to start without API keys. */
const KEYS = { OPENAI_API_KEY: 'sk-test', AZURE_OPENAI_API_KEY: 'sk-test', ANTHROPIC_API_KEY: 'sk-test' };

/** Runs a program to its end. A program that asks the model and prints must have printed the whole answer. */
async function runToEnd(
  standIn: StandIn,
  code: string,
  words: readonly [string, ...string[]],
  environment = {},
) {
  const before = standIn.requests;
  const [program, ...rest] = words;
  const { stdout } = await run(program, rest, {
    cwd: standIn.directory,
    env: { PATH: process.env.PATH, HOME: standIn.directory, ...KEYS, ...environment },
    timeout: PATIENCE_MS,
  });
  const prints = /process\.stdout|console\.log|print\(/.test(code);
  if (prints && standIn.requests > before) expect(stdout).toContain(ANSWER);
}

export function javaScript({ code, language }: Snippet, standIn: StandIn): Promise<void> {
  const isCommonJs = /\brequire\(/.test(code);
  const suffix = language === 'ts' ? 'mts' : isCommonJs ? 'cjs' : 'mjs';
  const path = join(standIn.program(), `main.${suffix}`);
  writeFileSync(path, standIn.located(code));
  return runToEnd(standIn, code, [process.execPath, '--disable-warning=ExperimentalWarning', path]);
}

/** Uses the Python client from the repository, so there is nothing to install. */
export async function python({ code }: Snippet, standIn: StandIn): Promise<Missing | undefined> {
  const environment = await pythonEnvironment();
  if ('missing' in environment) return environment;
  const path = join(standIn.program(), 'main.py');
  writeFileSync(path, standIn.located(code));
  await runToEnd(standIn, code, [environment.interpreter, path], {
    PYTHONPATH: join(ROOT, 'clients/python/src'),
    PYTHONDONTWRITEBYTECODE: '1',
  });
  return undefined;
}
