import { execFile } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { debianProgram, type Missing } from '../debian-program.ts';
import { KUBERNETES } from '../helm/chart.ts';
import { helmBinary } from '../kubernetes/binaries.ts';
import { ROOT, type Snippet, snippetsOf } from './pages.ts';
import type { StandIn } from './stand-in.ts';

const run = promisify(execFile);
const PATIENCE_MS = 100_000;

/** Commands of the documentation that are not carried out, and why. They have to be commands of a shell all the same. */
const NOT_CARRIED_OUT: Readonly<Record<string, string>> = {
  docker: 'needs an engine; test/docker carries out the Dockerfile, and runs what comes of it',
  cosign: 'needs an image in a registry',
  kubectl: 'needs a cluster; test/kubernetes shows every manifest to an API server',
  pip: 'needs a registry; test/client-python installs the package',
  gh: 'needs a repository on the network',
  git: 'needs a repository on the network',
};

/** What every machine has, and is taken as it is. */
const TOOLS = [
  'bash',
  'cat',
  'cp',
  'env',
  'grep',
  'head',
  'ls',
  'mkdir',
  'sed',
  'sleep',
  'tail',
  'tee',
  'tr',
  'true',
];
/** Those that a machine may lack; they are installed when an example needs them. */
const INSTALLED = ['curl', 'jq', 'openssl'];

/** Runs a block of commands, with programs of our own in the place of those that a user would have installed. */
export async function shell({ page, code }: Snippet, standIn: StandIn): Promise<Missing | undefined> {
  const directory = standIn.program();
  const bin = join(directory, '.bin');
  writePrograms(directory, bin);
  for (const name of INSTALLED.filter((each) => new RegExp(`\\b${each}\\b`).test(code))) {
    const program = await debianProgram(name);
    if ('missing' in program) return program;
    // What fails on the other side has to fail here.
    const options = name === 'curl' ? '--silent --show-error --fail-with-body' : '';
    writeProgram(join(bin, name), `exec ${program.path} ${options} "$@"`);
  }
  if (/\bhelm\b/.test(code)) {
    const helm = await helmBinary();
    if ('missing' in helm) return helm;
    cpSync(join(ROOT, 'helm'), join(directory, 'helm'), { recursive: true });
    // There is no cluster to install in: what would be, and whether it can be made of these words. test/kubernetes has one to
    // test a release in.
    writeProgram(
      join(bin, 'helm'),
      `if [ "$1" = test ]; then exit 0; fi\nif [ "$1" = install ]; then shift; set -- template --kube-version ${KUBERNETES} "$@"; fi\nexec ${helm.path} "$@"`,
    );
  }
  writeFiles(page, directory, standIn);
  const script = join(directory, '.script');
  writeFileSync(script, standIn.located(commandsOf(code)));
  const environment = { PATH: bin, HOME: directory, ...KEYS };
  const words = ['--noprofile', '--norc', '-euo', 'pipefail', script];
  await run(join(bin, 'bash'), words, { cwd: directory, env: environment, timeout: PATIENCE_MS });
  return undefined;
}

/** What a shell replaces in the examples. */
const KEYS = {
  OPENAI_API_KEY: 'sk-test',
  ANTHROPIC_API_KEY: 'sk-test',
  BACKUP_KEY: 'sk-test',
  REDIS_PASSWORD: 'hunter2',
  HOLDFAST_SECRET: 'a secret for tests only',
  IMAGE: 'holdfast',
};

/** Of a session with a prompt only what was typed. */
function commandsOf(code: string): string {
  const typed = code.split('\n').filter((line) => line.startsWith('$ '));
  return typed.length > 0 ? `${typed.map((line) => line.slice(2)).join('\n')}\n` : code;
}

/** Files that the page shows: blocks that begin with their name as a comment. */
function writeFiles(page: string, directory: string, standIn: StandIn): void {
  const text = readFileSync(join(ROOT, page), 'utf8');
  for (const { code } of snippetsOf({ path: page, text })) {
    const [, name] =
      /^(?:#|\/\/) ([\w./-]+\.(?:ya?ml|json|cfg|conf|m?js|py))$/m.exec(code.split('\n')[0] ?? '') ?? [];
    if (name === undefined) continue;
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), standIn.located(code));
  }
}

function writePrograms(directory: string, bin: string): void {
  mkdirSync(bin);
  for (const tool of TOOLS) {
    const path = ['/usr/bin', '/bin'].map((place) => join(place, tool)).find((each) => existsSync(each));
    if (path !== undefined) symlinkSync(path, join(bin, tool));
  }
  const program = (path: string, text: string) => writeProgram(join(directory, path), text);
  const command = `'${process.execPath}' --disable-warning=ExperimentalWarning '${ROOT}/src/cli.ts'`;
  const scriptIs = (name: string) =>
    `'${process.execPath}' --eval 'if (!require("${ROOT}/package.json").scripts[process.argv[1]]) throw process.argv[1]' -- ${name}`;

  // A server is only started, on ports that are free.
  program(
    '.bin/holdfast',
    `if [[ "\${1:-}" =~ ^(serve|chaos)$ ]]; then\n  exec '${process.execPath}' '${ROOT}/test/docs/until-listening.ts' "$@"\nfi\nexec ${command} "$@"`,
  );
  program('.bin/npx', 'if [ "$1" = vitest ]; then exec "$@"; fi\n[ "$1" = holdfast ]\nexec "$@"');
  program(
    '.bin/npm',
    [
      'case "$1" in',
      // Of those that a test run is part of, only that there are such scripts.
      `  test) ${scriptIs('test')};;`,
      `  run) ${scriptIs('"$2"')};;`,
      '  start) shift; [ $# = 0 ] || shift; exec holdfast serve "$@";;',
      // test/package.test.ts packs and installs the package.
      `  pack) [ $# = 1 ] || [ -f '${ROOT}'/"$2"/package.json ];;`,
      `  install) [ $# = 1 ] || [ -d '${ROOT}'/node_modules/"$2" ] || [[ "$2" =~ /holdfast(-client)?-${version()}.tgz$ ]];;`,
      '  *) exit 1;;',
      'esac',
    ].join('\n'),
  );
  program(
    '.bin/node',
    [
      'case "$1" in',
      '  dist/cli.js) shift; exec holdfast "$@";;',
      // It writes to the repository; test/config/reference.test.ts runs it.
      `  scripts/*) [ -f '${ROOT}'/"$1" ];;`,
      `  packages/*) cd '${ROOT}'; exec '${process.execPath}' "$@";;`,
      `  *) exec '${process.execPath}' "$@";;`,
      'esac',
    ].join('\n'),
  );
  // Tests that tests would run: only whether they are there.
  program(
    '.bin/vitest',
    `[ "$1" = run ]\ncase "$2" in -t) ;; --config) [ -e '${ROOT}'/"$3" ] && [ -e '${ROOT}'/"$4" ];; *) [ -e '${ROOT}'/"$2" ];; esac`,
  );
  program('.ci/run', `[ -x '${ROOT}/.ci/run' ]`);
  // test/client-python makes such an environment and runs the tests of the package in it.
  program('.bin/python', '[ "$1 $2" = "-m venv" ]');
  program('.venv/bin/python', '[ "$1 $2" = "-m pytest" ]');
  program('.venv/bin/pip', `[ -f '${ROOT}/test/e2e/python/requirements.txt' ]`);
  mkdirSync(join(directory, 'clients/python'), { recursive: true });
  // Paths of the repository that they name have to be there, though.
  const exists = `[ -e '${ROOT}'/"$word" ] || { echo "no $word" >&2; exit 1; }`;
  const named = `for word in "$@"; do\ncase "$word" in helm/*|./helm/*|docs/*) ${exists};; esac\ndone`;
  for (const name of Object.keys(NOT_CARRIED_OUT)) program(`.bin/${name}`, named);
}

function writeProgram(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/bash\nset -eu\n${text}\n`);
  chmodSync(path, 0o755);
}

function version(): string {
  return JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version;
}
