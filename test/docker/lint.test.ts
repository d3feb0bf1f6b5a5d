import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, type TestContext, test } from 'vitest';
import { parse } from 'yaml';
import type { CachedProgram } from '../cached-program.ts';
import { actionlint, hadolint } from '../linters.ts';
import { assignments, execForm, parseDockerfile } from './dockerfile.ts';
import { contextOf, REPOSITORY } from './image-build.ts';

const run = promisify(execFile);
const read = (path: string): string => readFileSync(`${REPOSITORY}/${path}`, 'utf8');

let linters: { dockerfile: CachedProgram; workflows: CachedProgram };
beforeAll(async () => {
  const [dockerfile, workflows] = await Promise.all([hadolint(), actionlint()]);
  linters = { dockerfile, workflows };
}, 600_000);

async function complaints(
  { skip }: TestContext,
  linter: CachedProgram,
  words: readonly string[],
): Promise<string> {
  if ('missing' in linter) return skip(linter.missing);
  try {
    await run(linter.path, words, { cwd: REPOSITORY });
    return '';
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    return stdout + stderr;
  }
}

describe('the Dockerfile', () => {
  test('has nothing that hadolint complains of', async (context) => {
    expect(await complaints(context, linters.dockerfile, ['Dockerfile'])).toBe('');
  });

  test('hadolint would complain', async (context) => {
    const words = ['--no-color', 'test/docker/bad.Dockerfile'];
    expect(await complaints(context, linters.dockerfile, words)).toContain('DL3002');
  });

  const { globals, stages } = parseDockerfile(read('Dockerfile'));
  const final = stages.at(-1);

  test('builds on the Node that the tests run on, by its whole version', () => {
    const { devDependencies } = JSON.parse(read('package.json'));
    expect(globals.get('NODE_IMAGE')).toMatch(new RegExp(`^node:${devDependencies.node}-[a-z]+-slim$`));
    expect(process.versions.node).toBe(devDependencies.node);
  });

  test('ends with an image that has only what is copied into it, and needs no shell', () => {
    expect(final?.image).toBe('scratch');
    const instructions = final?.instructions ?? [];
    expect(instructions.filter(({ name }) => name === 'RUN')).toEqual([]);
    for (const name of ['ENTRYPOINT', 'CMD'])
      expect(
        execForm(instructions.find((instruction) => instruction.name === name)?.text ?? ''),
      ).toBeDefined();
  });

  test('runs Node with the options of `npm start`', () => {
    const environment = (final?.instructions ?? []).filter(({ name }) => name === 'ENV');
    const { NODE_OPTIONS } = Object.fromEntries(environment.flatMap(({ text }) => assignments(text)));
    expect(JSON.parse(read('package.json')).scripts.start).toContain(`node ${NODE_OPTIONS} `);
  });

  test('is sent what it copies, and neither keys nor tests nor the repository', () => {
    const copied = stages
      .flatMap(({ instructions }) => instructions)
      .filter(({ name, flags }) => name === 'COPY' && !flags.has('from'))
      .flatMap(({ text }) => text.split(' ').slice(0, -1));
    expect(new Set(copied)).toEqual(new Set(contextOf(read('.dockerignore'))));
  });
});

describe('the workflows', () => {
  const paths = globSync('.github/workflows/*.yml', { cwd: REPOSITORY });

  test('have nothing that actionlint complains of', async (context) => {
    expect(await complaints(context, linters.workflows, ['-no-color', ...paths])).toBe('');
  });

  test.each(paths)('%s uses actions by their commits, and may no more than it says', (path) => {
    const workflow = parse(read(path));
    const steps = Object.values<{ steps: { uses?: string }[] }>(workflow.jobs).flatMap((job) => job.steps);
    for (const { uses } of steps)
      if (uses !== undefined) expect(uses).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/);
    expect(workflow.permissions).toEqual({ contents: 'read' });
  });

  test('the release attests what is in the image and in the package, and how they were made', () => {
    const { jobs } = parse(read('.github/workflows/release.yml'));
    const build = jobs.image.steps.find(({ uses = '' }) => uses.startsWith('docker/build-push-action@'));
    expect(build.with).toMatchObject({ sbom: true, provenance: 'mode=max' });
    const { globals } = parseDockerfile(read('Dockerfile'));
    for (const name of globals.keys()) expect(build.with['build-args']).toContain(`${name}=`);
    const commands = jobs.package.steps.map(({ run: command = '' }) => command).join('\n');
    expect(commands).toContain('npm publish --provenance');
    expect(commands).toContain('npm sbom');
  });
});
