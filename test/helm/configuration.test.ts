import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { runCli, startReplicaProcess, temporaryDirectory } from '../cli-process.ts';
import { Chart, EXAMPLES, type Values, variable } from './chart.ts';
import { type Container, configurationOf, podOf, proxyOf, type Resource } from './resource.ts';

const chart = Chart.use();

/** The Secrets' entries, as the kubelet would find them. */
const SECRETS: Readonly<Record<string, string>> = {
  HOLDFAST_SECRET: 'correct horse battery staple',
  REDIS_URL: 'redis://:password@redis:6379/0',
  AGENTS_TOKEN: '0123456789abcdef0123456789abcdef',
};

function environmentOf({ env = [] }: Container): Record<string, string> {
  return Object.fromEntries(
    env.map(({ name, value, valueFrom }) => [
      name,
      value ?? SECRETS[valueFrom?.secretKeyRef.key ?? ''] ?? 'password',
    ]),
  );
}

function written(resources: readonly Resource[]): string {
  const file = join(temporaryDirectory(), 'holdfast.yaml');
  writeFileSync(file, configurationOf(resources));
  return file;
}

describe('the configuration that is rendered', () => {
  it.each(EXAMPLES.filter((example) => example !== 'sidecar.yaml'))(
    'of examples/%s is what holdfast check takes, without a warning, in the environment of the container',
    async (example) => {
      const resources = await chart.render(example);
      const { stdout, stderr, status } = await runCli(
        ['check', written(resources)],
        environmentOf(proxyOf(podOf(resources))),
      );
      expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
      expect(stdout).toContain('upstreams');
    },
  );

  it('of the chart of an application is what holdfast check takes', async () => {
    const resources = await chart.renderApplication();
    const { stderr, status } = await runCli(
      ['check', written(resources)],
      environmentOf(proxyOf(podOf(resources))),
    );
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  });

  it('serves what the probes of the pod ask for', async () => {
    const resources = await chart.renderWith({ store: { type: 'memory' } });
    const proxy = proxyOf(podOf(resources));
    expect(proxy.args?.slice(0, 2)).toEqual(['serve', '--config']);
    // Use free ports on loopback only.
    const local = { HOLDFAST_LISTEN_HOST: '127.0.0.1', HOLDFAST_LISTEN_ADMIN_HOST: '127.0.0.1' };
    const { admin } = await startReplicaProcess(['--config', written(resources)], {
      ...environmentOf(proxy),
      ...local,
    });
    for (const probe of [proxy.startupProbe, proxy.livenessProbe, proxy.readinessProbe]) {
      expect((await fetch(`${admin}${probe?.httpGet?.path}`)).status).toBe(200);
    }
  });

  it('has the ports that the container names, and the addresses that a kubelet can reach', async () => {
    const resources = await chart.renderWith({ ports: { api: 8000, admin: 9000 }, bindAddress: '::' });
    const proxy = proxyOf(podOf(resources));
    expect(parse(configurationOf(resources)).listen).toEqual({
      host: '::',
      port: 8000,
      admin_host: '::',
      admin_port: 9000,
    });
    expect(proxy.ports).toEqual([
      { name: 'api', containerPort: 8000 },
      { name: 'admin', containerPort: 9000 },
    ]);
    expect(proxy.readinessProbe?.httpGet?.port).toBe(9000);
  });

  it('has the first upstream first, which Helm would sort', async () => {
    const upstream = { base_url: 'https://llm.example.com/v1' };
    const config = { upstreams: { azure: upstream, zeta: upstream } };
    const resources = await chart.renderWith({ config, defaultUpstream: 'zeta' });
    expect(Object.keys(parse(configurationOf(resources)).upstreams)).toEqual(['zeta', 'azure', 'openai']);
  });

  it('keeps runs for as long as the place has room for, unless it is configured', async () => {
    const ttl_s = async (values: Values) =>
      parse(configurationOf(await chart.renderWith(values))).checkpoint.ttl_s;
    const secret = { existingSecret: 'holdfast' };
    expect(await ttl_s({})).toBe(3600);
    expect(await ttl_s({ secret, store: { type: 'valkey' }, valkey: { auth: secret } })).toBe(3600);
    expect(await ttl_s({ store: { file: { persistence: { enabled: true } } } })).toBeUndefined();
    expect(await ttl_s({ config: { checkpoint: { ttl_s: 60 } } })).toBe(60);
  });

  it('has large numbers as they were given', async () => {
    const limits = { body_bytes: 1_073_741_824, drain_ms: 25_000 };
    const resources = await chart.renderWith({ config: { limits } });
    expect(configurationOf(resources)).toContain('body_bytes: 1073741824\n');
  });
});

describe('secrets', () => {
  const KEYS = {
    config: {
      upstreams: { openai: { api_key: variable('OPENAI_API_KEY') } },
      log: { level: variable('LOG_LEVEL:-info') },
      checkpoint: { sealing_keys: [variable('SEALING_KEY'), `$${variable('LITERAL')}`] },
    },
  };
  const named = (container: Container) =>
    Object.fromEntries((container.env ?? []).map(({ name, valueFrom }) => [name, valueFrom?.secretKeyRef]));

  it('are taken from the Secret that is named, one variable for each that the configuration refers to', async () => {
    const resources = await chart.renderWith({ ...KEYS, credentials: { existingSecret: 'keys' } });
    expect(named(proxyOf(podOf(resources)))).toEqual({
      NODE_OPTIONS: undefined,
      OPENAI_API_KEY: { name: 'keys', key: 'OPENAI_API_KEY' },
      SEALING_KEY: { name: 'keys', key: 'SEALING_KEY' },
      // Optional because the reference has a default.
      LOG_LEVEL: { name: 'keys', key: 'LOG_LEVEL', optional: true },
    });
  });

  it('that were given in plain text are in a Secret of the chart, and nowhere else', async () => {
    const resources = await chart.renderWith({
      ...KEYS,
      credentials: { values: { OPENAI_API_KEY: 'plain-openai', SEALING_KEY: 'plain-sealing' } },
      secret: { value: 'plain-secret-of-16' },
      store: { type: 'redis', redis: { url: 'redis://plain-redis' } },
    });
    const secret = resources.find(({ kind }) => kind === 'Secret');
    expect(Object.values(secret?.data ?? {}).map((value) => Buffer.from(value, 'base64').toString())).toEqual(
      ['plain-openai', 'plain-sealing', 'plain-secret-of-16', 'redis://plain-redis'],
    );
    expect(named(proxyOf(podOf(resources)))).toMatchObject({
      HOLDFAST_REDIS_URL: { name: 'release-holdfast', key: 'HOLDFAST_REDIS_URL' },
      HOLDFAST_SECRET: { name: 'release-holdfast', key: 'HOLDFAST_SECRET' },
      OPENAI_API_KEY: { name: 'release-holdfast', key: 'OPENAI_API_KEY' },
    });
    expect(JSON.stringify(resources.filter(({ kind }) => kind !== 'Secret'))).not.toContain('plain-');
  });

  it('make no Secret where none is given in plain text', async () => {
    const resources = await chart.render('gateway-production.yaml');
    expect(resources.filter(({ kind }) => kind === 'Secret')).toEqual([]);
  });
});
