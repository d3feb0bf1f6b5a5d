import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { post, streamRequest } from '../e2e/raw-client.ts';
import { StreamClient } from '../e2e/stream-client.ts';
import { CREDENTIAL } from '../e2e/talk.ts';
import { needs } from '../needs.ts';
import { redisBinary } from '../redis/binaries.ts';
import { RedisServer } from '../redis/redis-server.ts';
import { prometheusBinaries } from './binaries.ts';
import { DASHBOARD, dashboardQueries, RULES, RULES_FILE } from './chart-files.ts';
import { FaultyDeployment } from './faulty-deployment.ts';
import { Prometheus } from './prometheus.ts';
import { TROUBLES } from './troubles.ts';

/** The values that Grafana would fill in for the last minutes of a Prometheus that scrapes once a second. */
const RATE_INTERVAL = '2m';
const RANGE = '5m';
const CLIENTS = 4;
const CHANGE_MAX_MS = 60_000;

const [prometheusFound, redis] = await Promise.all([prometheusBinaries(), redisBinary()]);

describe('a Prometheus that scrapes replicas in trouble', needs(prometheusFound, redis), () => {
  let server: RedisServer;
  let deployment: FaultyDeployment;
  let prometheus: Prometheus;
  /** The alerts that were pending or firing during the trouble. */
  const alerts = new Set<string>();
  const load = new AbortController();
  let clients: Promise<void>;
  /** Holdfast's series on a replica before the first request. */
  let before: ReadonlySet<string>;

  async function seriesOf(replica: number): Promise<ReadonlySet<string>> {
    const all = (await deployment.replicas[replica]?.metrics()) ?? new Map<string, number>();
    return new Set([...all.keys()].filter((series) => series.startsWith('holdfast_')));
  }

  const until = (expression: string, isReached: (value: number) => boolean) =>
    vi.waitFor(
      async () => {
        const [sample] = await prometheus.query(expression);
        expect(isReached(sample?.value ?? Number.NaN), `${expression}: ${sample?.value}`).toBe(true);
      },
      { timeout: CHANGE_MAX_MS, interval: 250 },
    );

  /** Requests an answer with each kind of trouble, in turn, until the load ends. */
  async function ask(client: number): Promise<void> {
    const { replicas } = deployment;
    for (let round = 0; !load.signal.aborted; round++) {
      for (const [name, { model, request }] of Object.entries(TROUBLES)) {
        if (load.signal.aborted) return;
        const replica = replicas[(client + round) % 2];
        const question = `${name} #${client * 1_000_000 + round}`;
        const response = await post(replica?.url ?? '', streamRequest(model, question, request));
        await response.text().catch(() => {});
      }
    }
  }

  const long = (replica: number, question: number, headers: Record<string, string> = {}) =>
    StreamClient.open(
      deployment.replicas[replica]?.url ?? '',
      streamRequest('main-model', `long #${question}`),
      headers,
    );

  async function beginLong(replica: number, question: number, headers: Record<string, string> = {}) {
    const client = await long(replica, question, headers);
    await client.read();
    await client.received(20);
    return client;
  }

  /** Kills a replica: one run continues elsewhere, one can't, and no client returns for the third. */
  async function loseReplica(): Promise<void> {
    const key = { 'idempotency-key': 'comes back' };
    const [returning, , reading] = await Promise.all([
      beginLong(2, 1, key),
      beginLong(2, 2),
      beginLong(2, 3),
    ]);
    await deployment.replicas[2]?.kill('SIGKILL');
    const root = deployment.replicas[0]?.url.replace(/\/v1$/, '');
    const [read, back] = await Promise.all([
      fetch(`${root}/holdfast/v1/runs/${reading.run}/stream`, { headers: CREDENTIAL }),
      long(0, 1, key),
    ]);
    expect(back.run).toBe(returning.run);
    await back.read();
    await until('sum(holdfast_takeovers_total{outcome="taken"})', (value) => value > 0);
    back.leave();
    expect(await read.text()).toContain('not_resumable');
  }

  beforeAll(async () => {
    if ('missing' in prometheusFound || 'missing' in redis) return;
    server = await RedisServer.start({ binary: redis.path });
    deployment = await FaultyDeployment.start(server.url, 3);
    prometheus = await Prometheus.start({
      binary: prometheusFound.prometheus,
      targets: deployment.admins,
      rules: RULES_FILE,
    });
    await until('sum(holdfast_ready)', (value) => value === 3);
    before = await seriesOf(0);
    clients = Promise.all(Array.from({ length: CLIENTS }, (_, client) => ask(client))).then(() => {});

    await until('sum(holdfast_runs_total{outcome="complete"})', (value) => value > 10);
    const left = await beginLong(0, 4);
    left.leave();
    await loseReplica();
    await until('sum(holdfast_salvaged_runs_total)', (value) => value > 0);

    await server.kill();
    await until('min(holdfast_store_up)', (value) => value === 0);
    await until('sum(holdfast_checkpoint_errors_total)', (value) => value > 0);
    await until('ALERTS{alertname="HoldfastStoreDegraded"}', (value) => value === 1);
    for (const { labels } of await prometheus.query('ALERTS')) alerts.add(labels.alertname ?? '');
    await server.start();
    await until('min(holdfast_store_up)', (value) => value === 1);
  }, 240_000);

  afterAll(async () => {
    load.abort();
    await clients;
    try {
      await prometheus?.stop();
      await deployment?.close();
    } finally {
      await server?.stop();
    }
  });

  test('whatever happens has a series that was there before', async () => {
    expect(before.size).toBeGreaterThan(300);
    expect(await seriesOf(0)).toEqual(before);
  });

  test('reads what they expose, in the format with exemplars', async () => {
    const errors = await prometheus.scrapeErrors();
    const ofLiving = deployment.admins.slice(0, 2).map((host) => errors.get(`http://${host}/metrics`));
    expect(ofLiving).toEqual(['', '']);
    const runs = await prometheus.exemplars('holdfast_recovery_gap_seconds_bucket');
    expect(runs.length).toBeGreaterThan(0);
    for (const { run_id } of runs) expect(run_id).toMatch(/^run_[\w-]+$/);
    expect(await prometheus.exemplars('holdfast_time_to_first_token_seconds_bucket')).not.toEqual([]);
  });

  test(
    'every rule is evaluated without an error',
    async () => {
      await vi.waitFor(
        async () => {
          const rules = await prometheus.rules();
          const names = RULES.map(({ alert, record }) => alert ?? record);
          expect(new Set(rules.map(({ name }) => name))).toEqual(new Set(names));
          for (const { name, health, lastError } of rules)
            expect({ name, health, lastError }).toEqual({ name, health: 'ok' });
        },
        { timeout: CHANGE_MAX_MS },
      );
    },
    CHANGE_MAX_MS,
  );

  test('every recorded series is there', async () => {
    for (const { record } of RULES) {
      if (record === undefined) continue;
      const samples = await prometheus.query(record);
      expect(
        samples.some(({ value }) => Number.isFinite(value)),
        record,
      ).toBe(true);
    }
  });

  test('what is wrong is noticed', () => {
    expect([...alerts]).toEqual(expect.arrayContaining(['HoldfastStoreDegraded', 'HoldfastTargetDown']));
  });

  describe('every query of the dashboard returns data', () => {
    test.each(dashboardQueries(RATE_INTERVAL, RANGE))('$where: $expression', async ({ expression }) => {
      const samples = await prometheus.query(expression);
      expect(samples.filter(({ value }) => Number.isFinite(value))).not.toEqual([]);
    });
  });

  test('every variable of the dashboard has values', async () => {
    for (const { name, definition } of DASHBOARD.templating.list) {
      if (definition === undefined) continue;
      const [, metric = ''] = /^label_values\((\w+), \w+\)$/.exec(definition) ?? [];
      const samples = await prometheus.query(`count by (${name}) (${metric})`);
      expect(
        samples.some(({ labels }) => labels[name] !== undefined),
        name,
      ).toBe(true);
    }
  });

  test.each([
    'holdfast_runs_total{outcome="recovered"}',
    'holdfast_runs_total{outcome="salvaged"}',
    'holdfast_runs_total{outcome="failed"}',
    'holdfast_runs_total{outcome="rejected"}',
    'holdfast_interruptions_total{cause="connection_reset"}',
    'holdfast_interruptions_total{cause="idle_stall"}',
    'holdfast_interruptions_total{cause="provider_5xx"}',
    'holdfast_interruptions_total{cause="rate_limited"}',
    'holdfast_interruptions_total{cause="invalid_request"}',
    'holdfast_recoveries_total{plan="R1",mode="prefill"}',
    'holdfast_recoveries_total{plan="R1",mode="nudge"}',
    'holdfast_recoveries_total{plan="R1",mode="replay"}',
    'holdfast_recoveries_total{plan="R2"}',
    'holdfast_recoveries_total{plan="R3"}',
    'holdfast_recoveries_total{plan="R4"}',
    'holdfast_seams_total',
    'holdfast_tokens_total{kind="repaid"}',
    'holdfast_malformed_events_total',
    'holdfast_target_transitions_total{state="open"}',
    'holdfast_takeovers_total{outcome="taken"}',
    'holdfast_takeovers_total{outcome="refused"}',
    'holdfast_client_disconnects_total',
    'gen_ai_client_operation_duration_seconds_count{error_type="idle_stall"}',
    'gen_ai_client_operation_time_to_first_chunk_seconds_count',
    'gen_ai_client_operation_time_per_output_chunk_seconds_count',
    'gen_ai_client_inference_usage_output_tokens_total',
  ])(
    '%s has been counted',
    async (series) => {
      await until(`sum(${series})`, (value) => value > 0);
    },
    CHANGE_MAX_MS,
  );
});
