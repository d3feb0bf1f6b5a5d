import { readFileSync } from 'node:fs';
import { isRunId, type RunId } from '../checkpoint/store.ts';
import { transportCode } from '../interrupts/classify.ts';
import { isObject, parsedJson } from '../lib/json.ts';
import { CommandFailure, type Invocation, UsageError } from './command.ts';
import { DEFAULT_ADMIN_URL, DEFAULT_API_URL } from './options.ts';
import { printable } from './terminal.ts';

/** Requests to a replica are small, and the replica is nearby. */
const ANSWER_MAX_MS = 10_000;

type Kind = 'admin' | 'api';

const PORTS = {
  admin: { variable: 'HOLDFAST_ADMIN_URL', preset: DEFAULT_ADMIN_URL, name: 'admin port', other: 'API port' },
  api: { variable: 'HOLDFAST_API_URL', preset: DEFAULT_API_URL, name: 'API port', other: 'admin port' },
} as const;

/** One of a replica's two ports. Every failure is a {@link CommandFailure} that says what to do. */
export class ReplicaPort {
  readonly root: string;
  readonly #kind: Kind;
  readonly #headers: Readonly<Record<string, string>>;

  /** Throws a {@link UsageError} if the URL is invalid. */
  constructor(
    kind: Kind,
    { values }: Pick<Invocation, 'values'>,
    environment: NodeJS.ProcessEnv,
    headers: Readonly<Record<string, string>> = {},
  ) {
    const { variable, preset } = PORTS[kind];
    const given = values[kind];
    const text = given ?? (environment[variable] || preset);
    this.#kind = kind;
    this.root = rootOf(text, given === undefined ? variable : `--${kind}`);
    this.#headers = headers;
  }

  /** Resolves with the JSON object of the answer. `path`: below the root. `body`: of a `POST`. */
  async json(
    path: string,
    method: 'GET' | 'DELETE' | 'POST' = 'GET',
    body?: object,
  ): Promise<Record<string, unknown>> {
    const sent = body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    const response = await this.open(path, { method, ...sent });
    let text: string;
    try {
      text = await response.text();
    } catch (error) {
      throw this.#unreachable(error);
    }
    const document = parsedJson(text);
    if (!isObject(document)) throw this.#stranger(response);
    return document;
  }

  /** Resolves with a successful response. `signal` ends it; without one, a timeout applies. */
  async open(path: string, init: RequestInit = {}): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(this.root + path, {
        signal: AbortSignal.timeout(ANSWER_MAX_MS),
        ...init,
        headers: { ...this.#headers, ...(init.headers as Record<string, string> | undefined) },
        redirect: 'manual',
      });
    } catch (error) {
      throw this.#unreachable(error);
    }
    if (response.ok) return response;
    throw this.#refusal(response, await response.text().catch(() => ''));
  }

  #unreachable(error: unknown): CommandFailure {
    const { name, variable } = PORTS[this.#kind];
    const isTimeout = error instanceof Error && error.name === 'TimeoutError';
    const reason = isTimeout ? `no answer within ${ANSWER_MAX_MS / 1000} s` : transportCode(error);
    return new ReplicaUnreachable(
      `the ${name} at ${this.root} cannot be reached (${reason}); is a replica running there? Another address is given with --${this.#kind} URL or ${variable}.`,
    );
  }

  #refusal(response: Response, body: string): CommandFailure {
    const { status } = response;
    const { name, other } = PORTS[this.#kind];
    if (status === 401 || status === 403)
      return new CommandFailure(
        `${this.root} refuses this (${status}): the proxy in front of the replica requires other credentials.`,
      );
    const document = parsedJson(body);
    const error = isObject(document) && isObject(document.error) ? document.error : undefined;
    if (!error || typeof error.message !== 'string') return this.#stranger(response);
    if (error.code === 'run_not_found') return new CommandFailure(RUN_NOT_FOUND[this.#kind]);
    if (error.code === 'not_found')
      return new CommandFailure(
        `${this.root} does not serve this: it is not the ${name}, perhaps the ${other}; give the right one with --${this.#kind} URL.`,
      );
    const message = `${this.root} answers ${status}: ${printable(error.message)}`;
    return status === 503 ? new ReplicaUnreachable(message) : new CommandFailure(message);
  }

  #stranger({ status, headers }: Response): CommandFailure {
    const type = printable(headers.get('content-type') ?? 'no content type');
    return new CommandFailure(
      `the server at ${this.root} is not a replica of Holdfast (${status}, ${type}); another address is given with --${this.#kind} URL.`,
    );
  }
}

/** The replica may be back shortly. */
export class ReplicaUnreachable extends CommandFailure {}

const RUN_NOT_FOUND = {
  admin:
    'this replica has no such run: it may be with another replica, or have ended a while ago; with the key of its owner any replica finds it as long as it is stored.',
  api: 'there is no such run, it has expired, or it belongs to another key.',
} as const;

function rootOf(text: string, source: string): string {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol))
    throw new UsageError(`${source}: must be an http: or https: URL.`);
  if (url.username || url.password) throw new UsageError(`${source}: must not hold credentials.`);
  // Also accepts an SDK's base URL, which ends in `/v1`.
  return (url.origin + url.pathname).replace(/\/+$/, '').replace(/\/v1$/, '');
}

const STANDARD_INPUT = 0;
const KEY_VARIABLE = 'HOLDFAST_API_KEY';
/** The advice if the owner must be known. */
export const GIVE_THE_KEY = `put the key in ${KEY_VARIABLE} or in a file named by --key-file`;

/** Throws a {@link UsageError} for an invalid run id. */
export function runOperand({ operands }: Invocation): RunId {
  const [id = ''] = operands;
  if (!isRunId(id))
    throw new UsageError('that is not the id of a run: ids begin with run_, as in `holdfast runs list`.');
  return id;
}

/**
 * Headers that identify the owner. `undefined` if no key is given, or if only the admin port was named, because a key
 * in the environment may be meant for other commands. Throws a {@link UsageError}.
 */
export function ownerHeaders(
  invocation: Invocation,
  environment: NodeJS.ProcessEnv,
): Readonly<Record<string, string>> | undefined {
  const { values, switches } = invocation;
  if (switches.has('anonymous')) return {};
  const isAdminMeant =
    values.admin !== undefined && values.api === undefined && values['key-file'] === undefined;
  if (isAdminMeant) return undefined;
  const key = givenKey(invocation, environment);
  return key === undefined ? undefined : { authorization: `Bearer ${key}` };
}

/**
 * The key from `--key-file`, or else from the environment; `undefined` if there is none. Throws a {@link UsageError}.
 */
export function givenKey(
  { values }: Pick<Invocation, 'values'>,
  environment: NodeJS.ProcessEnv,
): string | undefined {
  const file = values['key-file'];
  if (file === undefined) return environment[KEY_VARIABLE] || undefined;
  let key: string;
  try {
    key = readFileSync(file === '-' ? STANDARD_INPUT : file, 'utf8').trim();
  } catch (error) {
    throw new UsageError(`--key-file: ${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
  if (!/^[!-~]+$/.test(key)) throw new UsageError(`--key-file: ${file} does not hold one key.`);
  return key;
}
