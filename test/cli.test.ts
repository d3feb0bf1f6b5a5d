import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { runCli, startCli, startReplicaProcess, temporaryDirectory } from './cli-process.ts';
import type { Missing } from './debian-program.ts';
import { chunkEvent, providerRequests, startProvider } from './http-peer.ts';
import { needs } from './needs.ts';
import { NO_UPSTREAM_URL } from './replica.ts';

const UPSTREAM = ['--upstream', NO_UPSTREAM_URL];

/** An older Node that this machine has besides the one that runs the tests. */
const oldNode = oldestNode();

function oldestNode(): { readonly path: string; readonly version: string } | Missing {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(directory, 'node');
    const version = spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout?.trim().slice(1);
    if (version !== undefined && Number.parseInt(version, 10) < 22) return { path, version };
  }
  return { missing: 'this machine has no Node before 22' };
}

function fileWith(text: string): string {
  const path = join(temporaryDirectory(), 'holdfast.yaml');
  writeFileSync(path, text);
  return path;
}

describe('a command that cannot be carried out exits with status 2 and says what to do', () => {
  it.each([
    [['srve'], 'holdfast: unknown command "srve". Did you mean "serve"?'],
    [['serve', '--prot', '80'], 'holdfast: unknown option "--prot". Did you mean "--port"?'],
    [['serve', '--store', 'memory', '--log-fromat=json'], 'unknown option "--log-fromat". Did you mean'],
    [['runs', 'list', '-x'], 'holdfast: unknown option "-x".'],
    [['serve', '--store'], "holdfast: Option '--store <value>' argument missing"],
    [['serve', '--hlep'], 'holdfast: unknown option "--hlep". Did you mean "--help"?'],
    [['--versoin'], 'holdfast: unknown command "--versoin". Did you mean "--version"?'],
    [['help', 'srve'], 'holdfast: unknown command "srve". Did you mean "serve"?'],
    [['help', 'runs', 'list', 'all'], 'holdfast: unexpected argument "all".'],
    [['version', '2'], 'holdfast: unexpected argument "2".'],
    [
      ['serve', ...UPSTREAM, '--log-format', 'shiny'],
      'holdfast: --log-format: log.format: must be one of auto, json, pretty, not "shiny".',
    ],
    [['serve', 'file.yaml'], 'holdfast: unexpected argument "file.yaml".'],
    [['check'], 'holdfast: check needs the file to check: holdfast check FILE'],
    [['serve'], 'holdfast: upstreams: no upstream is configured; pass --upstream'],
    [
      ['serve', ...UPSTREAM, '--port', 'eighty'],
      'holdfast: --port: listen.port: must be an integer, not "eighty".',
    ],
    [
      ['serve', ...UPSTREAM, '--store', 'sqlite:x'],
      'holdfast: --store: checkpoint.store: must be memory, file, file:DIR like file:./data',
    ],
    [['serve', ...UPSTREAM, '--config', 'nowhere.yaml'], 'holdfast: nowhere.yaml: cannot be read (ENOENT).'],
  ])('holdfast %j', async (words, message) => {
    const { status, stdout, stderr } = await runCli(words);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('    at ');
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  });

  it('an unknown key in the file', async () => {
    const file = fileWith(`upstreams: { main: { base_url: "${NO_UPSTREAM_URL}" } }\nclocks: { idle: 5 }\n`);
    const { status, stderr } = await runCli(['serve', '--config', file]);
    expect(stderr).toBe(`holdfast: ${file}:2:11: clocks.idle: unknown key. Did you mean "idle_ms"?\n`);
    expect(status).toBe(2);
  });

  it('a store directory that cannot be written to', async () => {
    const file = fileWith('');
    const { status, stderr } = await runCli(['serve', ...UPSTREAM, '--store', `file:${file}/data`]);
    expect(stderr).toMatch(/^holdfast: checkpoint\.store: the directory .*holdfast\.yaml\/data .*ENOTDIR/);
    expect(stderr).toContain('make it writable');
    expect(status).toBe(2);
  });

  it('a port in use', async () => {
    const { port } = new URL(await startProvider(() => {}));
    const { status, stderr } = await runCli(['serve', ...UPSTREAM, '--port', port, '--admin-port', '0']);
    expect(stderr).toBe(
      `holdfast: listen.port: cannot listen on 127.0.0.1 port ${port} (EADDRINUSE); it is in use: stop the other process, or choose another with --port or --admin-port (0 picks a free one).\n`,
    );
    expect(status).toBe(2);
  });
});

it('--version and --help', async () => {
  const { version } = manifest;
  expect(await runCli(['--version'])).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' });
  expect(await runCli(['version'])).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' });
  expect(await runCli(['serve', '--help'])).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('--upstream'),
  });
});

it('COMMAND --help says what the command takes', async () => {
  const { stdout } = await runCli(['runs', 'tail', '--help']);
  expect(stdout).toMatch(/^holdfast runs tail \[options\] ID: /);
  expect(stdout).toContain('--key-file FILE');
  const group = await runCli(['runs', '--help']);
  expect(group.stdout.match(/^ {2}holdfast runs \w+/gm)).toHaveLength(4);
  expect(group.status).toBe(0);
});

it('help says the same', async () => {
  const said = async (...words: string[]) => (await runCli(words)).stdout;
  expect(await said('help')).toBe(await said('--help'));
  expect(await said('help', 'runs')).toBe(await said('runs', '--help'));
  expect(await said('help', 'runs', 'tail')).toBe(await said('runs', 'tail', '--help'));
});

it('output that is not read any more ends the command', async () => {
  const child = startCli(['--help']);
  child.stdout?.destroy();
  expect(await once(child, 'exit')).toEqual([0, null]);
});

describe('a Node that is too old', () => {
  const [, oldest = ''] = /^>=(.*)$/.exec(manifest.engines.node) ?? [];
  const ENTRY = fileURLToPath(new URL('../src/cli.ts', import.meta.url));

  it.each([
    ['18.20.8', 2],
    ['22.18.9', 2],
    [`${oldest}.0`, 0],
    ['23.0.0', 0],
  ])('ends with one line and status 2 where it is: %s, status %d', (version, status) => {
    const versions = JSON.stringify({ ...process.versions, node: version });
    const disguise = `Object.defineProperty(process, 'versions', { value: ${versions} });`;
    const preload = `data:text/javascript,${encodeURIComponent(disguise)}`;
    const ended = spawnSync(process.execPath, ['--import', preload, ENTRY, 'version'], { encoding: 'utf8' });
    const line = `Holdfast needs Node ${oldest} or later; this is ${version}\n`;
    expect(ended).toMatchObject({ status, stderr: status === 0 ? '' : line });
  });

  it('can read the line', needs(oldNode), () => {
    if ('missing' in oldNode) throw new Error(oldNode.missing);
    // The entry file has no types, so the compiler's output is the file itself.
    const copy = join(temporaryDirectory(), 'cli.mjs');
    copyFileSync(ENTRY, copy);
    const ended = spawnSync(oldNode.path, [copy, 'serve'], { encoding: 'utf8' });
    const line = `Holdfast needs Node ${oldest} or later; this is ${oldNode.version}\n`;
    expect(ended).toMatchObject({ status: 2, stdout: '', stderr: line });
  });
});

describe('check', () => {
  it('prints what comes of the file, the environment and the defaults, without secrets', async () => {
    const file = fileWith(
      `upstreams: { main: { base_url: "https://llm.example.com", api_key: \${KEY} } }\ncheckpoint: { sealing_keys: ["\${SEALING}"] }\n`,
    );
    const environment = {
      KEY: 'sk-secret',
      HOLDFAST_SECRET: 'a secret of the server',
      HOLDFAST_PORT: '8081',
      HOLDFAST_STORE: 'redis://default:p@ssword@redis:6379/0',
      SEALING: 'a key that nobody else may ever know',
    };
    const { status, stdout, stderr } = await runCli(['check', file], environment);
    expect(status).toBe(0);
    expect(stdout).toContain('port: 8081\n');
    expect(stdout).toContain('api_key: "[redacted]"\n');
    expect(stdout).toContain('store: redis://[redacted]@redis:6379/0\n');
    expect(stdout).not.toMatch(/sk-secret|a secret|ssword|a key that/);
    expect(stderr).toContain('warning: upstreams.main.base_url: https://llm.example.com has no path');
  });

  it('hides nothing where no secret is set', async () => {
    const file = fileWith(`upstreams: { main: { base_url: "${NO_UPSTREAM_URL}", headers: {} } }\n`);
    const { stdout } = await runCli(['check', file]);
    expect(stdout).toContain('sealing_keys: []\n');
    expect(stdout).toContain('headers: {}\n');
    expect(stdout).not.toContain('redacted');
  });

  it('--json: the configuration, or what is wrong with it', async () => {
    const sound = fileWith(`upstreams: { main: { base_url: "${NO_UPSTREAM_URL}", api_key: sk-secret } }\n`);
    const right = await runCli(['check', '--json', sound], { HOLDFAST_PROT: '1' });
    expect(JSON.parse(right.stdout)).toMatchObject({
      ok: true,
      configuration: { upstreams: { main: { base_url: NO_UPSTREAM_URL, api_key: '[redacted]' } } },
      warnings: [expect.stringContaining('HOLDFAST_PROT')],
    });
    expect(right).toMatchObject({ status: 0, stderr: '' });
    const unsound = fileWith('upstreams: {}\nclocks: { idle: 5 }\n');
    const wrong = await runCli(['check', '--json', unsound]);
    expect(JSON.parse(wrong.stdout)).toEqual({
      ok: false,
      problems: [
        {
          source: `${unsound}:2:11`,
          path: 'clocks.idle',
          message: 'unknown key. Did you mean "idle_ms"?',
        },
      ],
    });
    expect(wrong).toMatchObject({ status: 2, stderr: '' });
  });

  it('reports all values that are wrong in one round', async () => {
    const file = fileWith(
      [
        `secret: \${HOLDFAST_TEST_UNSET}`,
        'upstreams: { main: { base_url: "https://llm.example.com/v1" } }',
        'recovery: { seam: strikt }',
        'listn: {}',
      ].join('\n'),
    );
    const { status, stderr } = await runCli(['check', file], { HOLDFAST_PORT: 'abc' });
    expect(status).toBe(2);
    expect(stderr.trimEnd().split('\n')).toEqual([
      expect.stringContaining(':1:1: secret: the environment variable HOLDFAST_TEST_UNSET is not set'),
      expect.stringContaining(':4:1: listn: unknown key. Did you mean "listen"?'),
      expect.stringContaining('HOLDFAST_PORT: listen.port: must be an integer, not "abc".'),
      expect.stringContaining(':3:13: recovery.seam: must be one of strict, best_effort'),
    ]);
  });

  it('reports all names and files that are not there in one round', async () => {
    const file = fileWith(
      [
        'upstreams: { main: { base_url: "https://llm.example.com/v1", ca_file: /nowhere.pem, api_key_file: /no.key } }',
        'routes: [{ model: "*", targets: [{ upstream: mian }] }]',
        'webhooks: [{ url: "https://hooks.example.com", secret_file: /nowhere.key }]',
      ].join('\n'),
    );
    const { status, stderr } = await runCli(['check', file]);
    expect(status).toBe(2);
    expect(stderr.trimEnd().split('\n')).toEqual([
      expect.stringContaining('there is no upstream "mian". Did you mean "main"?'),
      expect.stringContaining(':1:62: upstreams.main.ca_file: /nowhere.pem cannot be read (ENOENT).'),
      expect.stringContaining(':1:85: upstreams.main.api_key_file: /no.key cannot be read (ENOENT).'),
      expect.stringContaining(':3:48: webhooks[0].secret_file: /nowhere.key cannot be read (ENOENT).'),
    ]);
  });
});

describe('serve', () => {
  it('writes lines for people where it is asked to, and no colours where they are not shown', async () => {
    const words = ['serve', ...UPSTREAM, '--port', '0', '--admin-port', '0', '--store', 'memory'];
    const child = startCli([...words, '--log-format', 'pretty', '--log-level', 'info']);
    let log = '';
    for await (const piece of child.stdout ?? []) {
      log += piece;
      if (log.includes('listening')) child.kill('SIGTERM');
    }
    expect(log.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^\d\d:\d\d:\d\d\.\d{3} info {2}listening api=http:\S+ admin=http:\S+$/),
      expect.stringMatching(/ info {2}draining signal=SIGTERM drain_ms=25000$/),
      expect.stringMatching(/ info {2}stopped$/),
    ]);
  });

  it('names its addresses, warns of unknown variables, and ends with status 0 on SIGTERM', async () => {
    const { child, exit, lines, api, admin, stderr } = await startReplicaProcess(UPSTREAM, {
      HOLDFAST_PROT: '1',
      HOLDFAST_LIMITS_DRAIN_DELAY_MS: '0',
    });
    expect((await fetch(`${admin}/readyz`)).status).toBe(200);
    expect((await fetch(`${api}/v1/models`)).status).toBe(502);
    child.kill('SIGTERM');
    expect(await exit).toEqual([0, null]);
    expect(await stderr).toMatch(new RegExp(`^holdfast .*: API on ${api}, admin on ${admin}\n$`));
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual([
      'HOLDFAST_PROT: unknown environment variable, ignored. Did you mean "HOLDFAST_PORT"?',
      'listening',
      'pass-through failed',
      'draining',
      'stopped',
    ]);
  });

  it('opens the admin port on an address of its own, and takes the variables of other commands for none of its', async () => {
    const { child, exit, admin, lines } = await startReplicaProcess(
      [...UPSTREAM, '--admin-host', '127.0.0.2'],
      {
        HOLDFAST_API_KEY: 'sk-secret',
        HOLDFAST_ADMIN_URL: 'http://127.0.0.1:9090',
        HOLDFAST_API_URL: 'http://127.0.0.1:8080',
      },
    );
    expect(new URL(admin).hostname).toBe('127.0.0.2');
    expect((await fetch(`${admin}/livez`)).status).toBe(200);
    child.kill('SIGTERM');
    await exit;
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['listening', 'draining', 'stopped']);
  });

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'lets a stream end after %s, and takes no new one',
    async (signal) => {
      const provider = providerRequests();
      const root = await startProvider(provider.listener);
      const { child, exit, api, admin } = await startReplicaProcess(['--upstream', `${root}/v1`], {
        HOLDFAST_LIMITS_DRAIN_DELAY_MS: '0',
      });
      const answer = fetch(`${api}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer sk-client' },
        body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hello' }] }),
      });
      const up = await provider.next();
      up.response.writeHead(200, { 'content-type': 'text/event-stream' });
      up.response.write(chunkEvent({ role: 'assistant', content: 'Hel' }));
      const response = await answer;

      child.kill(signal);
      let readiness = await fetch(`${admin}/readyz`);
      while (readiness.status !== 503) readiness = await fetch(`${admin}/readyz`);
      expect((await fetch(`${api}/v1/models`)).status).toBe(503);
      up.response.write(chunkEvent({ content: 'lo' }));
      up.response.end(`${chunkEvent({}, 'stop')}data: [DONE]\n\n`);
      const body = await response.text();
      expect(body).toContain('"content":"lo"');
      expect(body.endsWith('data: [DONE]\n\n')).toBe(true);
      expect(await exit).toEqual([0, null]);
    },
  );

  it('exits at once on the second signal', async () => {
    const provider = providerRequests();
    const root = await startProvider(provider.listener);
    const { child, exit, api, lines } = await startReplicaProcess(['--upstream', `${root}/v1`]);
    const broken = expect(fetch(`${api}/v1/models`)).rejects.toThrow('fetch failed');
    await provider.next();
    child.kill('SIGINT');
    while (!lines.some((line) => line.includes('draining'))) await new Promise(setImmediate);
    child.kill('SIGINT');
    expect(await exit).toEqual([1, null]);
    await broken;
  });
});
