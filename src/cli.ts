#!/usr/bin/env node
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { stringify } from 'yaml';
import type { Assignment } from './config/assignment.ts';
import { readCertificateAuthorities } from './config/certificates.ts';
import { DEFAULT_UPSTREAM } from './config/environment.ts';
import { loadConfiguration } from './config/load.ts';
import { redacted } from './config/redaction.ts';
import { suggestion } from './config/suggestion.ts';
import { VERSION } from './version.ts';

const HELP = `holdfast ${VERSION}: an OpenAI-compatible streaming proxy that keeps an answer alive when something breaks.

Usage
  holdfast serve [options]    run a replica
  holdfast check FILE         print the effective configuration, or what is wrong with it
  holdfast demo [ACT ...]     watch answers being cut and finished; in a clone of the repository
  holdfast --version
  holdfast --help

Options of serve
  --upstream URL       where the API lives, e.g. https://api.openai.com/v1
  --port PORT          API port (8080); 0 picks a free one
  --host HOST          address of both ports (127.0.0.1)
  --admin-port PORT    port of /metrics, /livez, /readyz and the status page (9090)
  --store STORE        memory, file:DIR or redis://HOST (file:./data)
  --config FILE        YAML file; see docs/configuration.md

Flags win over HOLDFAST_* environment variables, which win over the file.
`;

/** Exit status for a command that cannot be carried out as it was given. */
const EXIT_USAGE = 2;

/** The command line is not one of ours. */
class UsageError extends Error {
  override readonly name = 'UsageError';
}

type Command = (words: string[]) => Promise<void>;

/** One entry per command; each parses the words after its name. */
const COMMANDS: Readonly<Record<string, Command>> = {
  serve: serveCommand,
  check: checkCommand,
  demo: demoCommand,
};

const SERVE_FLAGS = {
  upstream: DEFAULT_UPSTREAM,
  port: ['listen', 'port'],
  host: ['listen', 'host'],
  'admin-port': ['listen', 'admin_port'],
  store: ['checkpoint', 'store'],
} as const;

async function serveCommand(words: string[]): Promise<void> {
  const { values } = parse(words, ['config', ...Object.keys(SERVE_FLAGS)], 0);
  const flags = Object.entries(SERVE_FLAGS).flatMap(([name, path]): Assignment[] => {
    const text = values[name];
    return text === undefined ? [] : [{ path, text, source: `--${name}` }];
  });
  // Loaded late: the other commands need neither the server nor its dependencies.
  const { serve } = await import('./serve.ts');
  await serve({ file: values.config, flags, environment: process.env });
}

async function checkCommand(words: string[]): Promise<void> {
  const { positionals } = parse(words, [], 1);
  const [file] = positionals;
  if (file === undefined) throw new UsageError('check needs the file to check: holdfast check FILE');
  const { configuration, warnings } = loadConfiguration({ file, environment: process.env });
  readCertificateAuthorities(configuration);
  for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
  process.stdout.write(stringify(redacted(configuration)));
}

/** The demo brings a provider that breaks and an SDK, which a proxy in production has no use for. */
async function demoCommand(words: string[]): Promise<void> {
  const program = join(import.meta.dirname, '../demo/demo.ts');
  if (!existsSync(program)) {
    throw new UsageError(
      'the demo is not part of the package: run `npm run demo` in a clone of the repository.',
    );
  }
  const [status] = await once(spawn(process.execPath, [program, ...words], { stdio: 'inherit' }), 'exit');
  process.exit(typeof status === 'number' ? status : 1);
}

function parse(words: string[], flags: readonly string[], positionals_max: number) {
  const options = Object.fromEntries(flags.map((name) => [name, { type: 'string' as const }]));
  let parsed: { values: Record<string, string | undefined>; positionals: string[] };
  try {
    const { values, positionals } = parseArgs({ args: words, options, allowPositionals: true });
    parsed = { values: values as Record<string, string | undefined>, positionals };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
  const unexpected = parsed.positionals[positionals_max];
  if (unexpected !== undefined) throw new UsageError(`unexpected argument "${unexpected}".`);
  return parsed;
}

async function main([name = '--help', ...words]: string[]): Promise<void> {
  if (name === '--version' || name === '-v') return void process.stdout.write(`${VERSION}\n`);
  if (name === '--help' || name === '-h' || words.includes('--help')) return void process.stdout.write(HELP);
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command) throw new UsageError(`unknown command "${name}".${suggestion(name, Object.keys(COMMANDS))}`);
  await command(words);
}

/** What is the caller's to mend is told without a stack. By name, because these come with modules loaded late. */
const MENDABLE: ReadonlySet<string> = new Set([
  'UsageError',
  'ConfigurationError',
  'StoreConfigurationError',
  'ListenError',
]);

try {
  await main(process.argv.slice(2));
  process.exit(0);
} catch (error) {
  if (!(error instanceof Error && MENDABLE.has(error.name))) throw error;
  const hint = error instanceof UsageError ? '\nSee holdfast --help.' : '';
  process.stderr.write(`${error.message.replace(/^/gm, 'holdfast: ')}${hint}\n`);
  process.exit(EXIT_USAGE);
}
