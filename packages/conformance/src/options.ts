import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Wire } from './cases.ts';

export const HELP = `holdfast-conformance --base-url URL [options]

Starts a scripted provider on 127.0.0.1, asks through the gateway at URL, and says what an application saw of each answer.
Configure the gateway to use the provider, which prints its address, as its upstream for the models below.

  --base-url URL             the gateway, with or without /v1
  --api-key KEY              what clients authenticate with (conformance)
  --header "NAME: VALUE"     for each request; may be repeated
  --chat-header, --messages-header, --responses-header "NAME: VALUE"
                             for the requests of one wire; may be repeated
  --chat-model NAME          (gpt-4o)
  --messages-model NAME      (claude-haiku-4-5)
  --responses-model NAME     (gpt-4o)

The provider
  --listen HOST              the address it listens on (127.0.0.1)
  --upstream-port PORT       (8099)
  --tls-cert, --tls-key FILE PEM: it speaks HTTP/2 and HTTP/1.1 over TLS, and sends GOAWAY too
  --prefill continues|refuses
                             what it does with a request that ends with the beginning of the answer (continues)

A replica that dies
  --kill-command COMMAND     kills the gateway; run once, in a shell
  --second-base-url URL      a second replica, which is asked again

Cases
  --list                     prints the cases and ends
  --only WORD                cases that have WORD in their id; may be repeated
  --seed NUMBER              (1)
  --concurrency NUMBER       cases at a time, 1 to 256 (48)
  --hang-ms MS               without anything new to show, an answer hangs (180000)
  --silence-ms MS            how long the provider is silent in the cases of that name (75000)
  --idle-ms MS               how long clients wait for a byte in these cases (60000)

Reports
  --json FILE, --markdown FILE, --badge FILE
  --verbose                  the errors' messages too

Exit status: 0 if no application was misled, 1 if one was, 2 if the suite could not run.
`;

export interface Options {
  readonly list: boolean;
  readonly base_url: string;
  readonly second_base_url: string | undefined;
  readonly api_key: string;
  readonly models: Readonly<Record<Wire, string>>;
  readonly headers: Readonly<Record<Wire, Readonly<Record<string, string>>>>;
  readonly listen: string;
  readonly upstream_port: number;
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly prefill: 'continues' | 'refuses';
  readonly kill_command: string | undefined;
  readonly only: readonly string[];
  readonly seed: number;
  readonly concurrency: number;
  readonly hang_ms: number;
  readonly silence_ms: number;
  readonly idle_ms: number;
  readonly json: string | undefined;
  readonly markdown: string | undefined;
  readonly badge: string | undefined;
  readonly verbose: boolean;
}

/** What is wrong with the command line, and what to write instead. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

const text = { type: 'string' } as const;
const texts = { type: 'string', multiple: true, default: [] as string[] } as const;
const flag = { type: 'boolean', default: false } as const;
const FLAGS = {
  help: flag,
  list: flag,
  verbose: flag,
  'base-url': text,
  'second-base-url': text,
  'api-key': { ...text, default: 'conformance' },
  header: texts,
  'chat-header': texts,
  'messages-header': texts,
  'responses-header': texts,
  'chat-model': { ...text, default: 'gpt-4o' },
  'messages-model': { ...text, default: 'claude-haiku-4-5' },
  'responses-model': { ...text, default: 'gpt-4o' },
  listen: { ...text, default: '127.0.0.1' },
  'upstream-port': { ...text, default: '8099' },
  'tls-cert': text,
  'tls-key': text,
  prefill: { ...text, default: 'continues' },
  'kill-command': text,
  only: texts,
  seed: { ...text, default: '1' },
  concurrency: { ...text, default: '48' },
  'hang-ms': { ...text, default: '180000' },
  'silence-ms': { ...text, default: '75000' },
  'idle-ms': { ...text, default: '60000' },
  json: text,
  markdown: text,
  badge: text,
} as const;

/** A day: a timer of Node cannot wait for a month. */
const WAIT_MS_MAX = 86_400_000;

/** `undefined` if it asks for help. Throws a {@link UsageError}. */
export function optionsOf(words: readonly string[]): Options | undefined {
  const { values } = parsed(words);
  if (values.help) return undefined;
  const number = (name: keyof typeof values & string, min: number, max: number): number => {
    const said = String(values[name]);
    const value = Number(said);
    if (!/^\d+$/.test(said) || value < min || value > max)
      throw new UsageError(`--${name} ${said}: give a whole number from ${min} to ${max}`);
    return value;
  };
  const { prefill, 'kill-command': kill_command, 'second-base-url': second } = values;
  if (prefill !== 'continues' && prefill !== 'refuses')
    throw new UsageError(`--prefill ${prefill}: give "continues" or "refuses"`);
  if (second !== undefined && kill_command === undefined)
    throw new UsageError('--second-base-url: give --kill-command too');
  const silence_ms = number('silence-ms', 1, WAIT_MS_MAX);
  const idle_ms = number('idle-ms', 1, WAIT_MS_MAX);
  if (idle_ms >= silence_ms)
    throw new UsageError(
      `--idle-ms ${idle_ms}: give less than --silence-ms, or no client loses its patience`,
    );
  if (values['base-url'] === undefined && !values.list)
    throw new UsageError('--base-url: give the URL of the gateway');
  const common = values.header;
  return {
    list: values.list,
    base_url: rootOf('base-url', values['base-url'] ?? 'http://127.0.0.1'),
    second_base_url: second === undefined ? undefined : rootOf('second-base-url', second),
    api_key: values['api-key'],
    models: {
      chat: values['chat-model'],
      messages: values['messages-model'],
      responses: values['responses-model'],
    },
    headers: {
      chat: headersOf([...common, ...values['chat-header']]),
      messages: headersOf([...common, ...values['messages-header']]),
      responses: headersOf([...common, ...values['responses-header']]),
    },
    listen: values.listen,
    upstream_port: number('upstream-port', 0, 65_535),
    tls: tlsOf(values['tls-cert'], values['tls-key']),
    prefill,
    kill_command,
    only: values.only,
    seed: number('seed', 0, 2 ** 32 - 1),
    concurrency: number('concurrency', 1, 256),
    hang_ms: number('hang-ms', 1, WAIT_MS_MAX),
    silence_ms,
    idle_ms,
    json: values.json,
    markdown: values.markdown,
    badge: values.badge,
    verbose: values.verbose,
  };
}

function parsed(words: readonly string[]) {
  try {
    return parseArgs({ args: [...words], options: FLAGS });
  } catch (error) {
    throw new UsageError(`${(error as Error).message} See --help.`);
  }
}

function rootOf(name: string, said: string): string {
  const url = URL.parse(said);
  if (!url || !/^https?:$/.test(url.protocol))
    throw new UsageError(`--${name} ${said}: give a URL that begins with http:// or https://`);
  return said.replace(/\/+$/, '').replace(/\/v1$/, '');
}

function headersOf(lines: readonly string[]): Record<string, string> {
  const headers = lines.map((line) => {
    const [, name, value] = /^([\w-]+):\s*(.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined)
      throw new UsageError(`--header ${line}: give it as "name: value"`);
    return [name, value];
  });
  return Object.fromEntries(headers);
}

function tlsOf(cert: string | undefined, key: string | undefined): Options['tls'] {
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined)
    throw new UsageError('--tls-cert: give --tls-key too, and the reverse');
  try {
    return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
  } catch (error) {
    throw new UsageError(`--tls-cert, --tls-key: ${(error as Error).message}; give files that can be read`);
  }
}
