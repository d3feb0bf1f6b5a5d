import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import http, { type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startReplicaProcess, temporaryDirectory } from '../cli-process.ts';
import { chunkEvent } from '../http-peer.ts';

const STREAMS = 200;

/** A provider that starts every answer with its name and leaves it open. */
class OpenProvider {
  readonly answers: ServerResponse[] = [];
  readonly keys: (string | undefined)[] = [];
  readonly #name: string;
  readonly #server = http.createServer((request, response) => {
    this.keys.push(request.headers.authorization);
    request.resume().once('end', () => this.#answer(response));
  });
  #waiting: { readonly count: number; readonly resolve: () => void } | undefined;

  constructor(name: string) {
    this.#name = name;
    onTestFinished(() => {
      this.#server.closeAllConnections();
      this.#server.close();
    });
  }

  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  /** Resolves once it has received this many requests. */
  asked(count: number): Promise<void> {
    if (this.answers.length >= count) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting = { count, resolve };
    });
  }

  connections(): Promise<number> {
    return new Promise((resolve) => this.#server.getConnections((_error, count) => resolve(count)));
  }

  /** Ends the open answers. */
  finish(): void {
    for (const answer of this.answers.filter(({ writable }) => writable)) {
      answer.write(chunkEvent({ content: ' to its end' }));
      answer.end(`${chunkEvent({}, 'stop')}data: [DONE]\n\n`);
    }
  }

  #answer(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(chunkEvent({ role: 'assistant', content: this.#name }));
    this.answers.push(response);
    if (this.#waiting && this.answers.length >= this.#waiting.count) this.#waiting.resolve();
  }
}

async function providers() {
  const [before, after] = [new OpenProvider('before'), new OpenProvider('after')];
  return { before, after, urls: { before: await before.start(), after: await after.start() } };
}

/** A configuration file: JSON is valid YAML. */
const fileWith = (upstreams: object, more: object = {}): string =>
  JSON.stringify({
    upstreams,
    checkpoint: { store: 'memory' },
    recovery: { backoff_ms: 1 },
    limits: { drain_delay_ms: 0 },
    ...more,
  });

/** Replaces the file atomically, as editors do. */
function put(path: string, text: string): void {
  writeFileSync(`${path}~`, text);
  renameSync(`${path}~`, path);
}

type ReplicaProcess = Awaited<ReturnType<typeof startReplicaProcess>>;

/** Starts a replica with this configuration. */
async function start(text: string) {
  const path = join(temporaryDirectory(), 'holdfast.yaml');
  put(path, text);
  return { path, ...(await startReplicaProcess(['--config', path])) };
}

type Line = Readonly<Record<string, unknown>>;

const RELOADED = 'configuration reloaded';
const UNCHANGED = 'configuration reloaded: nothing has changed';
const REFUSED = 'configuration not reloaded: keeping the last one';

/** The first line with this message after the first `from` lines. */
async function logged(
  { lines, child }: { readonly lines: readonly string[]; readonly child: ChildProcess },
  message: string,
  from = 0,
): Promise<Line> {
  for (;;) {
    const line = lines
      .slice(from)
      .map((text) => JSON.parse(text) as Line)
      .find(({ msg }) => msg === message);
    if (line) return line;
    await once(child.stdout as NodeJS.ReadableStream, 'data');
  }
}

const ask = (api: string, headers: Record<string, string> = {}, content = 'Tell me.') =>
  fetch(`${api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer sk-client', ...headers },
    body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content }] }),
  });

/** The text of an answer, which must be complete. */
function saidIn(body: string): string {
  expect(body.endsWith('data: [DONE]\n\n')).toBe(true);
  return [...body.matchAll(/"content":"([^"]*)"/g)].map(([, text]) => text).join('');
}

const reload = async ({ admin }: Pick<ReplicaProcess, 'admin'>) => {
  const answer = await fetch(`${admin}/reload`, { method: 'POST' });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
};

const metric = async ({ admin }: Pick<ReplicaProcess, 'admin'>, name: string) => {
  const text = await (await fetch(`${admin}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length + 1));
};

describe('a reload', () => {
  it('disturbs none of 200 open streams; new runs are served by the new configuration', async () => {
    const { before, after, urls } = await providers();
    const replica = await start(fileWith({ main: { base_url: urls.before, api_key: 'sk-before' } }));
    const answers = await Promise.all(
      Array.from({ length: STREAMS }, (_, index) => ask(replica.api, {}, `Tell me ${index}.`)),
    );
    await before.asked(STREAMS);

    put(replica.path, fileWith({ main: { base_url: urls.after, api_key: 'sk-after' } }));
    expect(await logged(replica, RELOADED)).toMatchObject({
      level: 'info',
      cause: 'file',
      changed: ['upstreams.main.base_url', 'upstreams.main.api_key'],
    });

    const fresh = ask(replica.api);
    await after.asked(1);
    after.finish();
    expect(saidIn(await (await fresh).text())).toBe('after to its end');
    expect(after.keys).toEqual(['Bearer sk-after']);

    before.finish();
    const said = await Promise.all(answers.map(async (answer) => saidIn(await answer.text())));
    expect(new Set(said)).toEqual(new Set(['before to its end']));
    expect(before.answers).toHaveLength(STREAMS);
    // The old configuration's connections close once nothing needs them.
    while ((await before.connections()) > 0) await fetch(`${replica.admin}/livez`);
    expect(await metric(replica, 'holdfast_config_reloads_total{outcome="applied"}')).toBe(1);
  });

  it('leaves a run the target that was removed, with its key, also for its recovery', async () => {
    const { before, urls } = await providers();
    const replica = await start(fileWith({ gone: { base_url: urls.before, api_key: 'sk-before' } }));
    const answer = await ask(replica.api);
    put(replica.path, fileWith({ main: { base_url: urls.after } }));
    await logged(replica, RELOADED);

    before.answers[0]?.destroy();
    await before.asked(2);
    before.finish();
    // Either way of asking for the rest is fine here: the seam may remove what the model repeats, or join the two parts
    // as they are.
    expect(saidIn(await answer.text())).toMatch(/^before.* to its end$/);
    expect(before.keys).toEqual(['Bearer sk-before', 'Bearer sk-before']);
  });

  it('lets a client come back to a run of the configuration before, whose target is gone', async () => {
    const { before, urls } = await providers();
    const replica = await start(fileWith({ gone: { base_url: urls.before } }));
    const client = new AbortController();
    const first = await fetch(`${replica.api}/v1/chat/completions`, {
      method: 'POST',
      signal: client.signal,
      headers: {
        'content-type': 'application/json',
        authorization: 'Bearer sk-client',
        'holdfast-resume': '1',
      },
      body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'Tell me.' }] }),
    });
    put(replica.path, fileWith({ main: { base_url: urls.after } }));
    await logged(replica, RELOADED);
    client.abort();
    await first.text().catch(() => {});

    const again = await ask(replica.api, { 'holdfast-resume': '1' });
    before.finish();
    expect(saidIn(await again.text())).toBe('before to its end');
    expect(again.headers.get('holdfast-run-id')).toBe(first.headers.get('holdfast-run-id'));
    expect(before.answers).toHaveLength(1);
  });

  it('with a wrong file keeps the last good one, and says what is wrong with each field', async () => {
    const { before, urls } = await providers();
    const good = fileWith({ main: { base_url: urls.before } });
    const replica = await start(good);
    put(
      replica.path,
      fileWith({ main: { base_url: 'nowhere' } }, { recovery: { backoff_ms: 5, backoff_max_ms: 1 } }),
    );
    const paths = ['upstreams.main.base_url', 'recovery.backoff_max_ms'];
    const problems = paths.map(
      (path) =>
        expect.objectContaining({
          path,
          source: expect.stringContaining('holdfast.yaml:') as string,
        }) as object,
    );
    expect(await logged(replica, REFUSED)).toMatchObject({ level: 'error', cause: 'file', problems });
    expect(await reload(replica)).toMatchObject({
      status: 422,
      body: { outcome: 'refused', problems, error: { code: 'configuration_invalid' } },
    });
    expect(await metric(replica, 'holdfast_config_last_reload_successful')).toBe(0);
    expect(await metric(replica, 'holdfast_config_reloads_total{outcome="refused"}')).toBe(2);

    const answer = ask(replica.api);
    await before.asked(1);
    before.finish();
    expect(saidIn(await (await answer).text())).toBe('before to its end');

    const { length } = replica.lines;
    put(replica.path, good);
    await logged(replica, UNCHANGED, length);
    expect(await metric(replica, 'holdfast_config_last_reload_successful')).toBe(1);
  });

  it('has every file and key that is missing among the problems', async () => {
    const { urls } = await providers();
    const replica = await start(fileWith({ main: { base_url: urls.before } }));
    put(
      replica.path,
      fileWith(
        { main: { base_url: urls.before, ca_file: '/nowhere/ca.pem', api_key_file: '/nowhere/key' } },
        { webhooks: [{ url: 'https://hooks.example.com/', secret_file: '/nowhere/secret' }] },
      ),
    );
    const { body } = await reload(replica);
    expect(body).toMatchObject({
      problems: [
        { path: 'upstreams.main.ca_file' },
        { path: 'webhooks[0].secret_file' },
        { path: 'upstreams.main.api_key_file' },
      ],
    });
  });

  it('notices that Kubernetes has changed where a link beside the file leads', async () => {
    const { after, urls } = await providers();
    const mount = temporaryDirectory();
    const mounted = (version: string, base_url: string) => {
      mkdirSync(join(mount, `..${version}`));
      writeFileSync(join(mount, `..${version}`, 'holdfast.yaml'), fileWith({ main: { base_url } }));
      symlinkSync(`..${version}`, join(mount, '..data_tmp'));
      renameSync(join(mount, '..data_tmp'), join(mount, '..data'));
    };
    mounted('one', urls.before);
    symlinkSync('..data/holdfast.yaml', join(mount, 'holdfast.yaml'));
    const replica = await startReplicaProcess(['--config', join(mount, 'holdfast.yaml')]);
    mounted('two', urls.after);
    expect(await logged(replica, RELOADED)).toMatchObject({ changed: ['upstreams.main.base_url'] });
    const answer = ask(replica.api);
    await after.asked(1);
    after.finish();
    expect(saidIn(await (await answer).text())).toBe('after to its end');
  });

  it('applies what a process can change, and names what only a restart applies', async () => {
    const { urls } = await providers();
    const replica = await start(fileWith({ main: { base_url: urls.before } }));
    put(
      replica.path,
      fileWith(
        { main: { base_url: urls.before } },
        { checkpoint: { store: 'file:./elsewhere' }, log: { level: 'debug' }, limits: { body_bytes: 1024 } },
      ),
    );
    const pending = ['checkpoint.store'];
    expect(await logged(replica, 'restart to apply checkpoint.store')).toMatchObject({ level: 'warn' });
    await logged(replica, RELOADED);
    expect(await reload(replica)).toMatchObject({
      status: 200,
      body: { outcome: 'unchanged', changed: [], restart_required: pending },
    });
    const { status } = await ask(replica.api, {}, 'x'.repeat(2000));
    expect(status).toBe(413);
  });

  it('by SIGHUP is made without a file, too, and ends nothing', async () => {
    const { before, urls } = await providers();
    const replica = await startReplicaProcess(['--upstream', urls.before]);
    const answer = await ask(replica.api);
    replica.child.kill('SIGHUP');
    expect(await logged(replica, UNCHANGED)).toMatchObject({ cause: 'signal', changed: [] });
    before.finish();
    expect(saidIn(await answer.text())).toBe('before to its end');
    replica.child.kill('SIGTERM');
    expect(await replica.exit).toEqual([0, null]);
  });

  it('is refused while the replica drains, which waits for runs of all configurations', async () => {
    const { before, after, urls } = await providers();
    const replica = await start(fileWith({ main: { base_url: urls.before } }));
    const old = await ask(replica.api);
    put(replica.path, fileWith({ main: { base_url: urls.after } }));
    await logged(replica, RELOADED);
    const fresh = await ask(replica.api);
    replica.child.kill('SIGTERM');
    await logged(replica, 'draining');
    expect(await reload(replica)).toMatchObject({ status: 503, body: { error: { code: 'shutting_down' } } });
    replica.child.kill('SIGHUP');
    before.finish();
    after.finish();
    expect(saidIn(await old.text())).toBe('before to its end');
    expect(saidIn(await fresh.text())).toBe('after to its end');
    expect(await replica.exit).toEqual([0, null]);
  });

  it('is made once for all that ask before it begins, and one at a time', async () => {
    const { urls } = await providers();
    const replica = await start(fileWith({ main: { base_url: urls.before } }));
    put(replica.path, fileWith({ main: { base_url: urls.after } }));
    const reports = await Promise.all(Array.from({ length: 20 }, () => reload(replica)));
    expect(new Set(reports.map(({ status }) => status))).toEqual(new Set([200]));
    const applied = reports.filter(({ body }) => body.outcome === 'applied');
    expect(applied.length).toBeGreaterThan(0);
    expect(await metric(replica, 'holdfast_config_reloads_total{outcome="applied"}')).toBe(1);
  });
});
