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

/** Commands that the documentation shows but tests don't run, with the reason. They must still be valid shell. */
const NOT_CARRIED_OUT: Readonly<Record<string, string>> = {
  docker: 'needs an engine; test/docker carries out the Dockerfile, and runs what comes of it',
  cosign: 'needs an image in a registry',
  kubectl: 'needs a cluster; test/kubernetes shows every manifest to an API server',
  pip: 'needs a registry; test/client-python installs the package',
  gh: 'needs a repository on the network',
  git: 'needs a repository on the network',
};

/** Tools that every machine has. */
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
/** Tools that a machine may lack; installed if an example needs them. */
const INSTALLED = ['curl', 'jq', 'openssl'];

/** Runs a block of commands, with stand-ins for the programs that a user would have installed. */
export async function shell({ page, code }: Snippet, standIn: StandIn): Promise<Missing | undefined> {
  const directory = standIn.program();
  const bin = join(directory, '.bin');
  writePrograms(directory, bin);
  for (const name of INSTALLED.filter((each) => new RegExp(`\\b${each}\\b`).test(code))) {
    const program = await debianProgram(name);
    if ('missing' in program) return program;
    // Make curl fail on HTTP errors, so that a failing request fails the example.
    const options = name === 'curl' ? '--silent --show-error --fail-with-body' : '';
    writeProgram(join(bin, name), `exec ${program.path} ${options} "$@"`);
  }
  if (/\bhelm\b/.test(code)) {
    const helm = await helmBinary();
    if ('missing' in helm) return helm;
    cpSync(join(ROOT, 'helm'), join(directory, 'helm'), { recursive: true });
    // Without a cluster to install into, render the chart with the same arguments. test/kubernetes tests a release in a
    // real one.
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

/** The environment variables that the examples use. */
const KEYS = {
  OPENAI_API_KEY: 'sk-test',
  ANTHROPIC_API_KEY: 'sk-test',
  BACKUP_KEY: 'sk-test',
  REDIS_PASSWORD: 'hunter2',
  HOLDFAST_SECRET: 'a secret for tests only',
  IMAGE: 'holdfast',
};

/** For a block that shows a shell session, keep only the commands. */
function commandsOf(code: string): string {
  const typed = code.split('\n').filter((line) => line.startsWith('$ '));
  return typed.length > 0 ? `${typed.map((line) => line.slice(2)).join('\n')}\n` : code;
}

/** Writes the files that the page shows: code blocks whose first line is a comment with a file name. */
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

  // Start servers on free ports, and stop them once they listen.
  program(
    '.bin/holdfast',
    `if [[ "\${1:-}" =~ ^(serve|chaos)$ ]]; then\n  exec '${process.execPath}' '${ROOT}/test/docs/until-listening.ts' "$@"\nfi\nexec ${command} "$@"`,
  );
  program('.bin/npx', 'if [ "$1" = vitest ]; then exec "$@"; fi\n[ "$1" = holdfast ]\nexec "$@"');
  program(
    '.bin/npm',
    [
      'case "$1" in',
      // Scripts that would run the tests again are only looked up.
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
      // Don't run it, as it writes to the repository; test/config/reference.test.ts does.
      `  scripts/*) [ -f '${ROOT}'/"$1" ];;`,
      `  packages/*) cd '${ROOT}'; exec '${process.execPath}' "$@";;`,
      `  *) exec '${process.execPath}' "$@";;`,
      'esac',
    ].join('\n'),
  );
  // Running vitest here would nest test runs: only check that the files exist.
  program(
    '.bin/vitest',
    `[ "$1" = run ]\ncase "$2" in -t) ;; --config) [ -e '${ROOT}'/"$3" ] && [ -e '${ROOT}'/"$4" ];; *) [ -e '${ROOT}'/"$2" ];; esac`,
  );
  program('.ci/run', `[ -x '${ROOT}/.ci/run' ]`);
  // test/client-python creates this environment and runs the package's tests in it.
  program('.bin/python', '[ "$1 $2" = "-m venv" ]');
  program('.venv/bin/python', '[ "$1 $2" = "-m pytest" ]');
  program('.venv/bin/pip', `[ -f '${ROOT}/test/e2e/python/requirements.txt' ]`);
  mkdirSync(join(directory, 'clients/python'), { recursive: true });
  // Check that any paths of the repository they name exist.
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
