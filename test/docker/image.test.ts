import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { temporaryDirectory } from '../cli-process.ts';
import { needs } from '../needs.ts';
import { startProvider } from '../provider/provider.ts';
import { freePort } from '../redis/free-port.ts';
import { startContainer } from './container.ts';
import { parseDockerfile } from './dockerfile.ts';
import { enclosures } from './enclosure.ts';
import { startHeldProvider } from './held-provider.ts';
import { contextOf, type Image, ImageBuild, REPOSITORY } from './image-build.ts';
import { thisMachine } from './node-image.ts';

/** Covers two installations from the registry on a busy machine. */
const BUILD_MS = 600_000;
const USER = 65532;

describe('the container image', { timeout: 120_000, ...needs(enclosures()) }, () => {
  let scratch: string;
  let image: Image;

  beforeAll(async () => {
    scratch = mkdtempSync(join(tmpdir(), 'holdfast-image-'));
    const dockerfile = parseDockerfile(readFileSync(join(REPOSITORY, 'Dockerfile'), 'utf8'));
    const context = contextOf(readFileSync(join(REPOSITORY, '.dockerignore'), 'utf8'));
    image = await new ImageBuild(dockerfile, context, scratch, thisMachine()).build();
  }, BUILD_MS);
  afterAll(() => rm(scratch, { recursive: true }), BUILD_MS);

  /** Creates a volume as an engine does: a copy of the image's directory, with its owner and mode. */
  function volume(): string {
    const directory = temporaryDirectory();
    const { uid, gid, mode } = statSync(join(image.root, 'data'));
    chownSync(directory, uid, gid);
    execFileSync('chmod', [(mode & 0o777).toString(8), directory]);
    return directory;
  }

  async function container(environment: Record<string, string>, command?: readonly string[]) {
    const ports = { HOLDFAST_PORT: '0', HOLDFAST_ADMIN_PORT: String(await freePort()) };
    const options = { volume: volume(), environment: { ...ports, ...environment } };
    return startContainer(image, command === undefined ? options : { ...options, command });
  }

  test('has what production needs, and nothing else', () => {
    const files = readdirSync(image.root, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name).slice(image.root.length + 1))
      .filter((path) => !path.startsWith('app/node_modules/') && !path.startsWith('app/dist/'));
    const libraries = files.filter((path) => /\.so(\.\d+)*$/.test(path));
    expect(files.filter((path) => !libraries.includes(path)).sort()).toEqual([
      'app/LICENSE',
      'app/container-health.mjs',
      'app/holdfast.schema.json',
      'app/package.json',
      'etc/group',
      'etc/nsswitch.conf',
      'etc/passwd',
      'usr/local/LICENSE',
      'usr/local/bin/node',
    ]);
    const { dependencies, devDependencies } = JSON.parse(
      readFileSync(join(REPOSITORY, 'package.json'), 'utf8'),
    );
    const installed = (name: string) => existsSync(join(image.root, 'app/node_modules', name));
    expect(Object.keys(dependencies).filter((name) => !installed(name))).toEqual([]);
    expect(Object.keys(devDependencies).filter(installed)).toEqual([]);
  });

  test('says what it is, and under which users it may run', () => {
    const { configuration } = image;
    expect(configuration).toMatchObject({ user: `${USER}:${USER}`, stopSignal: 'SIGTERM', ports: ['8080'] });
    expect(configuration.labels.get('org.opencontainers.image.licenses')).toBe('Apache-2.0');
    const { version } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8'));
    expect(configuration.labels.get('org.opencontainers.image.version')).toBe(version);
    expect(statSync(join(image.root, 'data'))).toMatchObject({ uid: USER, gid: USER });
    const writable = readdirSync(image.root, { recursive: true, encoding: 'utf8' }).filter((path) => {
      const entry = lstatSync(join(image.root, path));
      const isForAll = !entry.isSymbolicLink() && (entry.mode & 0o002) !== 0;
      return isForAll || entry.uid === USER || entry.gid === USER;
    });
    expect(writable).toEqual(['data']);
  });

  test('serves with a root that cannot be written, as a user without rights, and keeps its runs in the volume', async () => {
    const text = 'A holdfast is the organ with which kelp grips the rock.';
    const provider = await startProvider({ scripts: { '*': { parts: [{ text }] } } });
    onTestFinished(() => provider.close());
    const { api, admin, pid, health, run } = await container({ HOLDFAST_UPSTREAM: provider.url });
    expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toMatch(/^Uid:\t65532\t65532\t65532\t65532$/m);
    expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toMatch(/^CapEff:\t0+$/m);

    expect(await textOf(await ask(api))).toBe(text);
    expect(await health()).toEqual({ status: 0, printed: '' });
    const page = await fetch(`${admin}/`, { headers: { accept: 'text/html' } });
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);

    const write = (path: string) =>
      run(['/usr/local/bin/node', '-e', `require('node:fs').writeFileSync(${JSON.stringify(path)}, '')`]);
    expect((await write('/app/new')).printed).toContain('EROFS');
    expect((await write('/data/new')).status).toBe(0);
  });

  test('its first process stops at a SIGTERM, when the streams under way have ended', async () => {
    const { url, text, release } = await startHeldProvider();
    const patience = { HOLDFAST_LIMITS_DRAIN_MS: '100000', HOLDFAST_LIMITS_DRAIN_DELAY_MS: '0' };
    const environment = { HOLDFAST_UPSTREAM: url, ...patience };
    const { api, admin, pid, exit, log, health } = await container(environment);
    const response = await ask(api);
    process.kill(pid, 'SIGTERM');
    await until(async () => (await fetch(`${admin}/readyz`)).status === 503);
    // An orchestrator would kill an unhealthy container before its streams have ended.
    expect((await health()).status).toBe(0);
    expect((await ask(api)).status).toBe(503);

    release();
    expect(await textOf(response)).toBe(text);
    expect(await exit).toEqual([0, null]);
    expect(log.map(({ msg }) => msg)).toEqual(expect.arrayContaining(['draining', 'stopped']));
  });

  test('the health check finds the port by the command, and fails when no process answers there', async () => {
    const port = await freePort();
    const flags = ['serve', '--upstream', 'http://127.0.0.1:9/v1', '--admin-port', String(port)];
    const { admin, health, pid } = await container({}, [...flags, '--host', '0.0.0.0']);
    expect(admin).toBe(`http://127.0.0.1:${port}`);
    expect((await health()).status).toBe(0);
    process.kill(pid, 'SIGSTOP');
    expect(await health()).toMatchObject({ status: 1, printed: expect.stringContaining('no answer within') });
  });

  test('a configuration that is mounted is the one that counts', async () => {
    const file = join(temporaryDirectory(), 'holdfast.yaml');
    const ports = `port: 0, admin_port: ${await freePort()}`;
    writeFileSync(
      file,
      `listen: { host: 127.0.0.1, ${ports} }\ncheckpoint: { store: memory }\nupstreams: { a: { base_url: "http://127.0.0.1:9/v1" } }\n`,
    );
    chmodSync(dirname(file), 0o755);
    mkdirSync(join(image.root, 'config'), { recursive: true });
    const { admin, health } = await startContainer(image, {
      volume: volume(),
      environment: {},
      command: ['serve', '--config', '/config/holdfast.yaml'],
      mounts: new Map([['/config', dirname(file)]]),
    });
    expect(await (await fetch(`${admin}/`)).text()).toContain('memory');
    expect((await health()).status).toBe(0);
  });

  test('a store that cannot be written is logged, and ends it', async () => {
    const directory = temporaryDirectory();
    chmodSync(directory, 0o555);
    const environment = {
      HOLDFAST_UPSTREAM: 'http://127.0.0.1:9/v1',
      HOLDFAST_PORT: '0',
      HOLDFAST_ADMIN_PORT: '0',
    };
    await expect(startContainer(image, { volume: directory, environment })).rejects.toThrow(/data/);
  });
});

const ask = (api: string): Promise<Response> =>
  fetch(`${api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'any',
      stream: true,
      messages: [{ role: 'user', content: 'What is kelp?' }],
    }),
  });

async function textOf(response: Response): Promise<string> {
  const events = (await response.text()).split('\n').filter((line) => line.startsWith('data: {'));
  return events.map((line) => JSON.parse(line.slice(6)).choices[0]?.delta?.content ?? '').join('');
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise(setImmediate);
}
