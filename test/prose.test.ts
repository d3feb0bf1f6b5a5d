import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, type TestContext, test } from 'vitest';
import type { CachedProgram } from './cached-program.ts';
import { temporaryDirectory } from './cli-process.ts';
import { pages, ROOT } from './docs/pages.ts';
import { vale } from './linters.ts';

const run = promisify(execFile);

let linter: CachedProgram;
beforeAll(async () => {
  linter = await vale();
}, 600_000);

/** One complaint per line: `file:line:column:rule:message`. */
async function complaints({ skip }: TestContext, paths: readonly string[]): Promise<string> {
  if ('missing' in linter) return skip(linter.missing);
  try {
    const { stdout } = await run(linter.path, ['--config', '.vale.ini', '--output', 'line', ...paths], {
      cwd: ROOT,
    });
    return stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    return stdout + stderr;
  }
}

test('the documentation says things as engineers say them', async (context) => {
  expect(await complaints(context, [...pages().map(({ path }) => path), 'helm/holdfast/values.yaml'])).toBe(
    '',
  );
});

test('so do the comments in the code', async (context) => {
  expect(await complaints(context, ['src', 'demo', 'bench', 'packages'])).toBe('');
});

/** Examples that each rule has to refuse. */
const BANNED = {
  Chains: ['This is the name of the owner of the task of the agent.'],
  Phrases: [
    'The stream goes on.',
    'Then it went on.',
    'The client is told of it.',
    'This depends on what becomes of the call.',
    'This depends on what became of it.',
    'Another one gets what had come of it.',
    'It prints what comes of the file.',
    'The record has in it the name.',
    'The attempt came to its end, and comes to nothing.',
    'That is paid in vain.',
    'What is wrong is for the provider to say.',
    'There are tasks none of which have steps.',
    'Here is the word by which it is known.',
    'This is the end of whatever was left.',
  ],
  Subjects: [
    'It is shown to whoever can reach it.',
    'There nobody waits any more.',
    'Who does not want ids turns them off.',
    'Such is what a strange hand has noted.',
  ],
  Wording: [
    'The answer begins anew.',
    'The event passes as it came.',
    'The replica is taken for dead.',
    'The client hands it on as it is.',
    'The client brings its tail.',
    'A clock ran out.',
    'That is no error.',
    'A model of which nothing is known is tried.',
    'This is a place than which none is better.',
    'Holdfast makes a file where there is none.',
  ],
};

test('the linter finds each of the phrases that its rules ban', async (context) => {
  const sentences = Object.values(BANNED).flat();
  const path = join(temporaryDirectory(), 'page.md');
  writeFileSync(path, sentences.join('\n\n'));
  const found = (await complaints(context, [path]))
    .trim()
    .split('\n')
    .map((line) => line.split(':'));
  expect(found.map(([, line]) => Number(line))).toEqual(sentences.map((_, nth) => 2 * nth + 1));
  const rules = found.map(([, , , rule = '']) => rule.replace(/^\w+\./, ''));
  expect(rules).toEqual(Object.entries(BANNED).flatMap(([rule, all]) => all.map(() => rule)));
});
