import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { findCommand, parseInvocation } from '../src/commands/command-line.ts';
import { runCli, startCli, startReplicaProcess, temporaryDirectory } from './cli-process.ts';
import { chunkEvent, type Exchange, providerRequests, startProvider } from './http-peer.ts';
import { freePort } from './redis/free-port.ts';
import { NO_UPSTREAM_URL } from './replica.ts';

/** Each test starts several processes, possibly on a busy machine. */
vi.setConfig({ testTimeout: 60_000 });

const KEY = 'sk-the-owner-of-the-run';
const OWNER = { HOLDFAST_API_KEY: KEY };
/** Well formed, but no run has it. */
const NO_RUN = 'run_AAAAAAAAAAAAAAAAAAAAAA';

/** A replica with one run under way; the test dictates its answer. */
class RunUnderWay {
  readonly id: string;
  readonly api: string;
  readonly admin: string;
  readonly body: Promise<string>;
  readonly #up: Exchange;

  private constructor(
    { api, admin }: { api: string; admin: string },
    up: Exchange,
    { headers, body }: { headers: Headers; body: Promise<string> },
  ) {
    this.id = headers.get('holdfast-run-id') ?? '';
    this.api = api;
    this.admin = admin;
    this.body = body;
    this.#up = up;
  }

  /** On return, the answer has already said `Hel`. */
  static async start(model = 'm'): Promise<RunUnderWay> {
    const provider = providerRequests();
    const root = await startProvider(provider.listener);
    const replica = await startReplicaProcess(['--upstream', `${root}/v1`, '--store', 'memory']);
    const answer = askFor(replica.api, model);
    const up = await provider.next();
    up.response.writeHead(200, { 'content-type': 'text/event-stream' });
    up.response.write(chunkEvent({ role: 'assistant', content: 'Hel' }));
    const response = await answer;
    const body = response.text();
    body.catch(() => {});
    return new RunUnderWay(replica, up, { headers: response.headers, body });
  }

  get ports(): string[] {
    return ['--api', this.api, '--admin', this.admin];
  }

  /** Resolves once the provider has lost its client. */
  async left(): Promise<void> {
    if (!this.#up.response.closed) await once(this.#up.response, 'close');
  }

  say(content: string): void {
    this.#up.response.write(chunkEvent({ content }));
  }

  finish(): void {
    this.#up.response.end(`${chunkEvent({}, 'stop')}data: [DONE]\n\n`);
  }
}

const askFor = (api: string, model = 'm'): Promise<Response> =>
  fetch(`${api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${KEY}`, 'holdfast-resume': '1' },
    body: JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'hello' }] }),
  });

/** Starts the command and collects what it prints. */
function followed(words: readonly string[], environment: Record<string, string> = {}) {
  const child = startCli(words, environment);
  const printed = { stdout: '', stderr: '' };
  const news: (() => void)[] = [];
  const tellAll = () => {
    for (const tell of news.splice(0)) tell();
  };
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      printed[name] += text;
      tellAll();
    });
  const ended = once(child, 'close') as Promise<[number | null]>;
  void ended.then(tellAll);
  return {
    printed,
    ended,
    /** Resolves once standard output contains `text`. */
    async until(text: string): Promise<void> {
      while (!printed.stdout.includes(text)) {
        if (child.exitCode !== null) throw new Error(`never printed: ${printed.stdout}${printed.stderr}`);
        await new Promise<void>((resolve) => news.push(resolve));
      }
    },
  };
}

it('runs list: a table for people, where no client can play tricks on the terminal, and JSON', async () => {
  const run = await RunUnderWay.start('\u001b[31mred\u0007\nmodel');
  const { status, stdout } = await runCli(['runs', 'list', '--admin', run.admin]);
  const [titles = '', line = '', ...rest] = stdout.split('\n');
  expect(titles).toMatch(/^RUN +STATE +MODEL +UPSTREAM +ATTEMPT +CHARS +AGE +LAST$/);
  expect(line).toMatch(new RegExp(`^${run.id}  answering  .*red.*model +default +1 +3 +`));
  expect(rest).toEqual(['']);
  expect(stdout).not.toContain('\u001b');
  expect(stdout).not.toContain('\u0007');
  expect(status).toBe(0);

  const environment = { HOLDFAST_ADMIN_URL: run.admin };
  const json = await runCli(['runs', 'list', '--json'], environment);
  expect(JSON.parse(json.stdout)).toMatchObject({
    live: [{ run: run.id, state: 'answering', characters: 3 }],
    ended: [],
  });
});

it('runs show: the timeline of a run for readers of the admin port, the answer for its owner', async () => {
  const run = await RunUnderWay.start();
  // The admin port must not receive a key from the environment.
  const seen = await runCli(['runs', 'show', run.id, '--admin', run.admin], OWNER);
  expect(seen.stdout).toMatch(/^state +answering$/m);
  expect(seen.stdout).toMatch(/ attempt 1 at default \(first, model m\)$/m);
  expect(seen.stdout).not.toContain('Hel');

  run.say('lo\u001b[2J');
  run.finish();
  await run.body;
  const owned = await runCli(['runs', 'show', run.id, ...run.ports], OWNER);
  expect(owned.stdout).toMatch(/^status +complete$/m);
  expect(owned.stdout).toMatch(/^ {2}attempt 1 at default.*, first: 9 characters$/m);
  expect(owned.stdout).toMatch(/\ntext\nHello\\u001b\[2J\n$/);
});

it('runs tail: the text as it is said, for its owner', async () => {
  const run = await RunUnderWay.start();
  const keys = join(temporaryDirectory(), 'key');
  writeFileSync(keys, `${KEY}\n`);
  const tail = followed(['runs', 'tail', run.id, '--key-file', keys, ...run.ports]);
  const json = followed(['runs', 'tail', run.id, '--json', ...run.ports], OWNER);
  await tail.until('Hel');
  run.say('lo');
  await tail.until('Hello');
  run.finish();
  expect(await tail.ended).toEqual([0, null]);
  expect(tail.printed).toEqual({ stdout: 'Hello', stderr: `${run.id} is complete, 4 events\n` });
  expect(await json.ended).toEqual([0, null]);
  const lines = json.printed.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
  expect(lines.at(-1)).toEqual({ seq: 4, data: '[DONE]' });
});

it('runs tail: comes back where it was when the connection breaks', async () => {
  const run = await RunUnderWay.start();
  const wire = await breakableWire(run.api);
  const tail = followed(['runs', 'tail', run.id, '--api', wire.url], OWNER);
  await tail.until('Hel');
  wire.break();
  run.say('lo');
  await tail.until('Hello');
  wire.break();
  run.finish();
  expect(await tail.ended).toEqual([0, null]);
  expect(tail.printed.stdout).toBe('Hello');
});

it('runs tail: continues when the replica that delivered the run is lost', async () => {
  const provider = providerRequests();
  const root = await startProvider(provider.listener);
  const store = `file:${temporaryDirectory()}`;
  const serve = () =>
    startReplicaProcess(['--upstream', `${root}/v1`, '--store', store], {
      HOLDFAST_CHECKPOINT_LEASE_MS: '2000',
    });
  const [holder, other] = await Promise.all([serve(), serve()]);
  const answer = askFor(holder.api);
  const first = await provider.next();
  first.response.writeHead(200, { 'content-type': 'text/event-stream' });
  first.response.write(chunkEvent({ role: 'assistant', content: 'The sea is' }));
  const { headers, body } = await answer;
  const lost = new Response(body).text().catch(() => {});
  const id = headers.get('holdfast-run-id') ?? '';
  const tail = followed(['runs', 'tail', id, '--api', other.api], OWNER);
  await tail.until('The sea is');
  holder.child.kill('SIGKILL');
  await lost;
  const { response } = await provider.next();
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(
    `${chunkEvent({ role: 'assistant', content: ' salt.' })}${chunkEvent({}, 'stop')}data: [DONE]\n\n`,
  );
  expect(await tail.ended).toEqual([0, null]);
  expect(tail.printed.stdout).toBe('The sea is salt.');
});

it('runs tail: the timeline until its end, for readers of the admin port', async () => {
  const run = await RunUnderWay.start();
  const tail = followed(['runs', 'tail', run.id, '--admin', run.admin]);
  const json = followed(['runs', 'tail', run.id, '--json', '--admin', run.admin]);
  await Promise.all([tail.until('attempt 1 answers'), json.until('answering')]);
  run.say('lo');
  run.finish();
  expect(await tail.ended).toEqual([0, null]);
  expect(await json.ended).toEqual([0, null]);
  const lines = tail.printed.stdout.trimEnd().split('\n');
  expect(lines.map((line) => line.trim().split(/ {2,}/)[1])).toEqual([
    'attempt 1 at default (first, model m)',
    'attempt 1 answers',
    'attempt 1 whole after 5 characters',
    'ended: complete (stop)',
  ]);
  const entries = json.printed.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(entries.map(({ kind }) => kind)).toEqual(['attempt', 'answering', 'whole', 'ended']);
  expect(new Set(entries.map((entry) => entry.run))).toEqual(new Set([run.id]));
});

it('runs tail: an entry of the timeline is printed once, in whatever way it comes', async () => {
  const run = NO_RUN;
  const entries = [
    { at_ms: 10, kind: 'attempt', attempt: 1, upstream: 'u', mode: 'first', model: 'm', compressed: false },
    { at_ms: 20, kind: 'answering', attempt: 1 },
    { at_ms: 30, kind: 'whole', attempt: 1, added: 5 },
    { at_ms: 40, kind: 'ended', outcome: 'failed' },
  ];
  const fed = (from: number, to?: number) =>
    entries.slice(from, to).map((entry) => ({ ...entry, key: 7, run }));
  let feeds = 0;
  const admin = await startProvider(({ url }, response) => {
    if (url === `/runs/${run}`) {
      const timeline = entries.slice(0, 1 + feeds);
      return void response.end(JSON.stringify({ version: 1, key: 7, created_at_ms: 0, timeline }));
    }
    response.write(`event: snapshot\ndata: ${JSON.stringify({ version: 1 })}\n\n`);
    const last = ++feeds === 1 ? fed(0, 2) : fed(2);
    const others = [{ at_ms: 5, kind: 'answering', attempt: 1, key: 8, run: 'run_of_another' }];
    response.end(`event: update\ndata: ${JSON.stringify({ entries: [...others, ...last] })}\n\n`);
  });
  const { status, stdout, stderr } = await runCli(['runs', 'tail', run, '--admin', admin]);
  expect(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.trim()),
  ).toEqual([
    '+10ms  attempt 1 at u (first, model m)',
    '+20ms  attempt 1 answers',
    '+30ms  attempt 1 whole after 5 characters',
    '+40ms  ended: failed',
  ]);
  expect(stderr).toBe(`holdfast: ${run} was not finished: failed.\n`);
  expect(status).toBe(1);
});

it('runs cancel: only its owner can end it', async () => {
  const run = await RunUnderWay.start();
  const cancel = ['runs', 'cancel', run.id, '--api', run.api];
  expect(await runCli(cancel)).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('only the owner of a run can cancel it'),
  });
  expect(await runCli(cancel, { HOLDFAST_API_KEY: 'sk-another' })).toMatchObject({
    status: 1,
    stderr: 'holdfast: there is no such run, it has expired, or it belongs to another key.\n',
  });
  const { status, stdout } = await runCli(cancel, OWNER);
  expect(stdout).toMatch(new RegExp(`^${run.id} cancelled, \\d+ events, 3 characters of text\n$`));
  expect(status).toBe(0);
  await run.left();
  const tail = await runCli(['runs', 'tail', run.id, '--api', run.api], OWNER);
  expect(tail).toMatchObject({ status: 1, stdout: 'Hel', stderr: expect.stringContaining('cancelled') });
});

it('says what is wrong with what it asks', async () => {
  const { api, admin } = await startReplicaProcess(['--upstream', NO_UPSTREAM_URL, '--store', 'memory']);
  const nowhere = `http://127.0.0.1:${await freePort()}`;
  const guarded = await startProvider((_request, response) => void response.writeHead(401).end());
  const page = await startProvider((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<title>Sign in</title>');
  });
  const cases: [words: string[], name: string, message: string][] = [
    [
      ['list', '--admin', nowhere],
      FAILURE,
      `${nowhere} cannot be reached (ECONNREFUSED); is a replica running`,
    ],
    [['list', '--admin', 'localhost:9090'], USAGE, '--admin: must be an http: or https: URL.'],
    [['list', '--admin', `http://me:secret@127.0.0.1:9`], USAGE, '--admin: must not hold credentials.'],
    [['list', '--admin', api], FAILURE, 'it is not the admin port, perhaps the API port'],
    [
      ['show', NO_RUN, '--api', admin, '--anonymous'],
      FAILURE,
      'it is not the API port, perhaps the admin port',
    ],
    [['show', NO_RUN, '--admin', admin], FAILURE, 'this replica has no such run'],
    [['tail', NO_RUN, '--admin', nowhere], FAILURE, 'cannot be reached (ECONNREFUSED)'],
    [['tail', NO_RUN, '--admin', admin], FAILURE, 'this replica has no such run'],
    [['show', NO_RUN, '--api', `${api}/v1`, '--anonymous'], FAILURE, 'there is no such run'],
    [['list', '--admin', guarded], FAILURE, 'refuses this (401)'],
    [['list', '--admin', page], FAILURE, 'not a replica of Holdfast (200, text/html)'],
    [['show', 'run_short'], USAGE, 'that is not the id of a run'],
    [['show'], USAGE, 'runs show needs ID: holdfast runs show ID'],
    [['lst'], USAGE, 'unknown command "runs lst". Did you mean "list"?'],
    [['--json'], USAGE, 'runs needs one of list, show, tail, cancel.'],
    [['show', NO_RUN, '--key', KEY], USAGE, 'unknown option "--key"'],
    [['show', NO_RUN, '--key-file', '/nowhere'], USAGE, '--key-file: /nowhere cannot be read (ENOENT).'],
  ];
  for (const [words, name, message] of cases) {
    const carriedOut = async () => {
      const { command, words: rest } = findCommand(['runs', ...words]);
      await (await command.load()).run(parseInvocation(command, rest));
    };
    await expect(carriedOut(), words.join(' ')).rejects.toMatchObject({
      name,
      message: expect.stringContaining(message),
    });
  }
});

/** These errors lead to exit status 1 and 2. */
const FAILURE = 'CommandFailure';
const USAGE = 'UsageError';

/** A relay to a server, with connections that the test can cut. */
async function breakableWire(to: string) {
  const sockets = new Set<Socket>();
  const wire = createServer((client) => {
    const server = connect(Number(new URL(to).port), '127.0.0.1');
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      one.on('error', () => {}).on('close', () => other.destroy());
    }
  });
  const cut = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  wire.listen(0, '127.0.0.1');
  await once(wire, 'listening');
  onTestFinished(() => {
    wire.close();
    cut();
  });
  return { url: `http://127.0.0.1:${(wire.address() as AddressInfo).port}`, break: cut };
}
