import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DIALECT_NAMES } from '../../src/config/dialect-names.ts';
import { type ConfigurationSources, loadConfiguration } from '../../src/config/load.ts';
import { ConfigurationError } from '../../src/config/problem.ts';

const BASE = 'upstreams: { main: { base_url: "https://llm.example.com/v1" } }\n';

function fileWith(text: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'holdfast.yaml');
  writeFileSync(path, text);
  return path;
}

const load = (text: string, more: Partial<ConfigurationSources> = {}) =>
  loadConfiguration({ file: fileWith(text), environment: {}, ...more });

const nameFault = (path: string) =>
  `${path}: is not a usable name: it must start with a letter and have letters, digits, "-" and "_" only.`;

/** The problems of a file, without the path of its directory. */
function problemsOf(text: string, more: Partial<ConfigurationSources> = {}): string[] {
  try {
    load(text, more);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return error.message.split('\n').map((line) => line.replace(/^\/.*\/(?=holdfast\.yaml)/, ''));
  }
  throw new Error('the configuration is valid');
}

const flag = (name: string, path: string[], text: string) => ({ path, text, source: `--${name}` });

describe('where values come from', () => {
  it('a base URL alone is enough', () => {
    const { configuration, warnings } = loadConfiguration({
      environment: { HOLDFAST_UPSTREAM: 'https://api.openai.com/v1' },
    });
    expect(warnings).toEqual([]);
    expect(configuration).toEqual({
      listen: { host: '127.0.0.1', port: 8080, admin_port: 9090, cors_origins: [] },
      workers: 1,
      upstreams: { default: { base_url: 'https://api.openai.com/v1' } },
      routes: [],
      clients: [],
      owner: {},
      recovery: {
        plans: ['R1', 'R2', 'R3', 'R4'],
        max_attempts: 4,
        same_target_retries: 1,
        tool_proof: 1,
        drop_repeated_calls: false,
        seam: 'best_effort',
        probe: 'off',
        backoff_ms: 500,
        backoff_max_ms: 8000,
        retry_after_max_s: 60,
        retry_after_wait_s: 0,
        unreachable_ms: 30_000,
        no_progress_ms: 600_000,
      },
      breaker: { failures: 5, failure_percent: 50, window: 20, open_ms: 5000, open_max_ms: 20_000 },
      clocks: {
        connect_ms: 10_000,
        progress_ms: 300_000,
        progress_reasoning_ms: 600_000,
        attempt_ms: 1_800_000,
      },
      checkpoint: {
        replication: { wait_replicas: 0, wait_ms: 500 },
        store: 'file',
        durability: 'interval',
        interval_ms: 100,
        lease_ms: 3000,
        command_ms: 1000,
        rewritable_bytes: 32_768,
        on_unreachable: 'fail',
        sealing_keys: [],
        unproven: 'refuse',
        ttl_s: 604_800,
      },
      resume: {
        detached_ms: 60_000,
        match_requests: true,
        derive_thread: true,
        max_takeovers: 5,
        salvage_after_ms: 60_000,
        notices: true,
      },
      delivery: { keepalive_ms: 15_000, client_profiles: true, tool_calls: 'held' },
      faults: { allow_header: false },
      webhooks: [],
      limits: {
        body_bytes: 33_554_432,
        header_bytes: 16_384,
        run_bytes: 16_777_216,
        event_bytes: 4_194_304,
        connections: 10_000,
        runs_per_owner: 1000,
        header_ms: 20_000,
        request_ms: 300_000,
        keep_alive_ms: 72_000,
        client_stall_ms: 300_000,
        drain_ms: 25_000,
        drain_delay_ms: 5000,
      },
      status_page: { content: false, hosts: [] },
      tracing: {},
      metrics: { exemplars: true, gen_ai: false },
      log: { level: 'info', format: 'auto' },
    });
  });

  it('a flag wins over the environment, which wins over the file, which wins over the default', () => {
    const text = `${BASE}listen: { host: file, port: 1, admin_port: 2 }`;
    const environment = { HOLDFAST_PORT: '3', HOLDFAST_ADMIN_PORT: '4' };
    const flags = [flag('port', ['listen', 'port'], '5')];
    expect(load(text, { environment, flags }).configuration.listen).toEqual({
      host: 'file',
      port: 5,
      admin_port: 4,
      cors_origins: [],
    });
  });

  it('every single-valued key has a variable named after its section', () => {
    const environment = {
      HOLDFAST_CLOCKS_IDLE_MS: '1',
      HOLDFAST_RECOVERY_MAX_ATTEMPTS: '2',
      HOLDFAST_CHECKPOINT_DURABILITY: 'write_ahead',
      HOLDFAST_STORE: 'memory',
      HOLDFAST_SECRET: 'sixteen characters',
      HOLDFAST_LOG_LEVEL: 'warn',
      HOLDFAST_LIMITS_BODY_BYTES: '2048',
      HOLDFAST_RESUME_NOTICES: 'false',
    };
    expect(load(BASE, { environment }).configuration).toMatchObject({
      clocks: { idle_ms: 1 },
      recovery: { max_attempts: 2 },
      checkpoint: { durability: 'write_ahead', store: 'memory' },
      secret: 'sixteen characters',
      log: { level: 'warn' },
      limits: { body_bytes: 2048 },
      resume: { notices: false, match_requests: true },
    });
  });

  it('the file can be named by HOLDFAST_CONFIG', () => {
    const { configuration } = loadConfiguration({ environment: { HOLDFAST_CONFIG: fileWith(BASE) } });
    expect(Object.keys(configuration.upstreams)).toEqual(['main']);
  });

  it('an upstream named outside the file comes first, and keeps what the file says of it', () => {
    const text = BASE.replace('} }', '}, default: { base_url: "http://old/v1", api_key: key } }');
    const flags = [flag('upstream', ['upstreams', 'default', 'base_url'], 'http://new/v1')];
    const { configuration } = load(text, { environment: { HOLDFAST_UPSTREAM: 'http://new/v1' }, flags });
    expect(Object.entries(configuration.upstreams)[0]).toEqual([
      'default',
      { base_url: 'http://new/v1', api_key: 'key' },
    ]);
  });

  it('an upstream has clocks of its own for those it names only', () => {
    const text = 'upstreams: { main: { base_url: "http://x/v1", clocks: { idle_ms: 5 } } }';
    expect(load(text).configuration.upstreams.main?.clocks).toEqual({ idle_ms: 5 });
  });
});

it('the example of the documentation is valid', () => {
  const text = `
listen: { host: 0.0.0.0, port: 8080, admin_port: 9090 }
secret: \${HOLDFAST_SECRET}             # owner HMAC and sealing
upstreams:
  openai: { base_url: https://api.openai.com/v1, dialect: openai }
  backup: { base_url: https://llm.example.com/v1, dialect: vllm, api_key: \${BACKUP_KEY} }
routes:                                 # first match wins
  - model: "gpt-*"
    targets: [ { upstream: openai }, { upstream: backup, model: llama-4 } ]
recovery: { plans: [R1, R2, R3, R4], max_attempts: 4, tool_proof: 1, backoff_ms: 500, backoff_max_ms: 8000, retry_after_max_s: 60 }
clocks: { connect_ms: 10000, first_byte_ms: 120000, first_token_ms: 120000, idle_ms: 90000, progress_ms: 300000, attempt_ms: 1800000 }
checkpoint: { store: "file:./data", durability: interval, interval_ms: 100, ttl_s: 604800 }
limits: { body_bytes: 33554432, run_bytes: 16777216, drain_ms: 25000 }
`;
  const environment = { HOLDFAST_SECRET: 'sixteen characters', BACKUP_KEY: 'sk-backup' };
  expect(load(text, { environment }).configuration).toMatchObject({
    secret: 'sixteen characters',
    upstreams: { openai: { dialect: 'openai' }, backup: { api_key: 'sk-backup' } },
    routes: [{ model: 'gpt-*', targets: [{ upstream: 'openai' }, { upstream: 'backup', model: 'llama-4' }] }],
  });
});

it.each([
  'redis://localhost',
  'rediss://:password@redis.internal:6380/2',
  'redis+sentinel://a:26379,b:26379/name/0',
  'rediss+cluster://a:6379,b:6379',
])('a store can be %s', (store) => {
  expect(load(BASE, { environment: { HOLDFAST_STORE: store } }).configuration.checkpoint.store).toBe(store);
});

describe('variables in the file', () => {
  it('expand, fall back and escape; numbers stay numbers, true and false stay what they are', () => {
    const text = `
upstreams: { main: { base_url: "http://\${HOST}:\${PORT:-8000}/v1", api_key: "\${EMPTY:-none}$\${x}" } }
listen: { port: \${API_PORT:-8081} }
resume: { notices: \${NOTICES} }
`;
    const environment = { HOST: 'llm', EMPTY: '', NOTICES: 'false' };
    expect(load(text, { environment }).configuration).toMatchObject({
      upstreams: { main: { base_url: 'http://llm:8000/v1', api_key: `none\${x}` } },
      listen: { port: 8081 },
      resume: { notices: false },
    });
  });

  it('cannot smuggle structure in', () => {
    const text = `upstreams: { main: { base_url: "http://x/v1", api_key: \${KEY} } }`;
    const key = 'a: b # c\n{d}';
    expect(load(text, { environment: { KEY: key } }).configuration.upstreams.main?.api_key).toBe(key);
  });

  it('do not move the places that errors name', () => {
    const text = `upstreams: { main: { base_url: \${URL}, api_key: \${A}\${B:-b: "}, dialetc: vllm } }`;
    const environment = { URL: 'http://a.much.longer.name/v1', A: 'a' };
    expect(problemsOf(text, { environment })).toEqual([
      `holdfast.yaml:1:${text.indexOf('dialetc') + 1}: upstreams.main.dialetc: unknown key. Did you mean "dialect"?`,
    ]);
  });

  it('that are not set, or not closed, are errors with their place', () => {
    const text = `${BASE}secret: \${NOPE}\nlog: { level: "\${open" }`;
    expect(problemsOf(text)).toEqual([
      `holdfast.yaml:2:1: secret: the environment variable NOPE is not set; set it or write \${NOPE:-default}.`,
      `holdfast.yaml:3:8: log.level: "\${" without a variable name and "}"; write "$\${" for a literal one.`,
    ]);
  });
});

describe('what is wrong is named with its place and the remedy', () => {
  it.each([
    ['clocks: { idle: 5 }', 'clocks.idle: unknown key. Did you mean "idle_ms"?'],
    ['recovry: {}', 'recovry: unknown key. Did you mean "recovery"?'],
    ['port: 5', 'port: unknown key. Did you mean "listen.port"?'],
    ['completely_different: 5', 'completely_different: unknown key.'],
    ['__proto__: { a: 1 }', '__proto__: unknown key.'],
    ['listen: { port: eighty }', 'listen.port: must be an integer, not "eighty".'],
    ['listen: { port: true }', 'listen.port: must be an integer, not true.'],
    ['listen: { port: 70000 }', 'listen.port: must be at most 65535, not 70000.'],
    ['listen: { port: -1 }', 'listen.port: must be at least 0, not -1.'],
    [
      'listen: { port: 80, admin_port: 80 }',
      'listen.admin_port: must differ from listen.port; 0 picks a free one.',
    ],
    ['clocks: 5', 'clocks: must be a section with keys, not 5.'],
    ['routes: 5', 'routes: must be a list, not 5.'],
    ['resume: { notices: maybe }', 'resume.notices: must be true or false, not "maybe".'],
    ['secret: short', 'secret: must have at least 16 characters.'],
    ['secret: 12345', 'secret: must be a string.'],
    [
      'log: { level: warning }',
      'log.level: must be one of trace, debug, info, warn, error, silent, not "warning". Did you mean "warn"?',
    ],
    ['recovery: { plans: [R1, R1] }', 'recovery.plans: must not have the same entry twice, not ["R1","R1"].'],
    ['recovery: { backoff_ms: 9000 }', 'recovery.backoff_max_ms: must not be less than recovery.backoff_ms.'],
    ['routes: [{ model: a, targets: [] }]', 'routes[0].targets: must have at least 1 entry, not [].'],
    [
      'routes: [{ model: a, targets: [{ upstream: mian }] }]',
      'routes[0].targets[0].upstream: there is no upstream "mian". Did you mean "main"?',
    ],
    [
      'routes: [{ model: a, targets: [{ upstream: other }] }]',
      'routes[0].targets[0].upstream: there is no upstream "other". Known: main.',
    ],
    [
      'routes: [{ model: a, targets: [{ upstream: main }], compression: { upstream: mian, model: b } }]',
      'routes[0].compression.upstream: there is no upstream "mian". Did you mean "main"?',
    ],
    [
      'routes: [{ model: a, targets: [{ upstream: main }], compression: { upstream: main } }]',
      'routes[0].compression.model: is required. The model that summarises.',
    ],
    [
      'routes: [{ model: a, targets: [{ upstream: main }], compression: { upstream: main, model: b, context_tokens: 4000 } }]',
      'routes[0].compression.context_tokens: must be at least 4096, 4 times summary_tokens, to leave room for what is summarised.',
    ],
    [
      'routes: [{ model: a, targets: [{ upstream: main }], compression: { upstream: main, model: b, at_share: 0.8 } }]',
      'routes[0].targets[0].context_tokens: is needed for compression.at_share, which is a share of it; say how many tokens the model takes.',
    ],
    [
      'routes: [{ model: a, targets: [{ upstream: main, context_tokens: 8000 }], compression: { upstream: main, model: b, at_share: 0 } }]',
      'routes[0].compression.at_share: must be at least 0.001, not 0.',
    ],
    [
      'routes: [{ model: a, targets: [{ upstream: main, context_tokens: 8000 }], compression: { upstream: main, model: b, at_share: 1.5 } }]',
      'routes[0].compression.at_share: must be at most 1, not 1.5.',
    ],
    [
      'routes: [{ model: a, targets: [{ upstream: main }], hedge: { after_ms: 1000 } }]',
      'routes[0].hedge: needs a second target to ask; add one under targets, or remove this.',
    ],
    [
      'routes: [{ model: a, targets: [{ upstream: main }, { upstream: main, model: b }], hedge: {} }]',
      'routes[0].hedge: needs after_ms, stall_ms or both: how long a target may be silent before the next one is asked as well.',
    ],
    [
      'routes: [{ model: a, targets: [{ upstream: main }, { upstream: main, model: b }], hedge: { after_ms: 1000, max_share: 5 } }]',
      'routes[0].hedge.max_share: must be at most 1, not 5.',
    ],
    ['routes: [{ model: a }]', 'routes[0].targets: is required. Upstreams in order of preference.'],
    [
      'routes: [{ model: a, targets: [{ upstream: main }, { upstream: main, model: b }, { upstream: main }] }]',
      'routes[0].targets[2]: is the same as targets[0]; remove it, or give it another model (recovery.same_target_retries says how often a target is asked again).',
    ],
    [
      'routes: [{ model: a, targets: [{ upstream: main, context_tokens: 0 }] }]',
      'routes[0].targets[0].context_tokens: must be at least 1, not 0.',
    ],
    ['breaker: { open_ms: 30000 }', 'breaker.open_max_ms: must not be less than breaker.open_ms.'],
    [
      'checkpoint: { store: sqlite }',
      'checkpoint.store: must be memory, file, file:DIR like file:./data, or a URL of Redis, like redis://localhost:6379/0.',
    ],
    [
      'checkpoint: { store: "redis://" }',
      'checkpoint.store: must be memory, file, file:DIR like file:./data, or a URL of Redis, like redis://localhost:6379/0.',
    ],
    ['checkpoint: { store: ["redis://:password@localhost"] }', 'checkpoint.store: must be a string.'],
    [
      'checkpoint: { store: "redis+cluster://localhost", replication: { wait_replicas: 1 } }',
      'checkpoint.replication.wait_replicas: must be 0, unless checkpoint.store is one Redis server, redis://, or known to Sentinel, redis+sentinel://.',
    ],
    [
      'checkpoint: { replication: { wait_replicas: 11 } }',
      'checkpoint.replication.wait_replicas: must be at most 10, not 11.',
    ],
    [
      'checkpoint: { replication: { wait_ms: 0 } }',
      'checkpoint.replication.wait_ms: must be at least 1, not 0.',
    ],
    ['checkpoint: { lease_ms: 5 }', 'checkpoint.lease_ms: must be at least 100, not 5.'],
    [
      'checkpoint: { sealing_keys: [too short to seal with] }',
      'checkpoint.sealing_keys[0]: must have at least 32 characters.',
    ],
    [
      'checkpoint: { sealing_keys: [12345678901234567890123456789012] }',
      'checkpoint.sealing_keys[0]: must be a string.',
    ],
    [
      `checkpoint: { sealing_keys: [${'key '.repeat(8)}!, ${'key '.repeat(8)}!] }`,
      'checkpoint.sealing_keys: must not have the same entry twice.',
    ],
  ])('%s', (line, problem) => {
    const [found = ''] = problemsOf(BASE + line);
    expect(found.replace(/^holdfast\.yaml:2:\d+: /, '')).toBe(problem);
  });

  it.each([
    ['*', 'is not an origin; write it like https://app.example.com.'],
    ['app.example.com', 'is not an origin; write it like https://app.example.com.'],
    ['https://[::1', 'is not an origin; write it like https://app.example.com.'],
    ['https://app.example.com/', 'is not an origin as browsers send it; write https://app.example.com.'],
    ['https://App.example.com:443', 'is not an origin as browsers send it; write https://app.example.com.'],
    ['chrome-extension://abc/page', 'is not an origin as browsers send it; write scheme and name only.'],
  ])('an origin of web pages that is %j', (origin, problem) => {
    const text = `listen: { cors_origins: ["https://app.example.com", "chrome-extension://abc", "${origin}"] }`;
    expect(problemsOf(`upstreams: { main: { base_url: "http://x/v1" } }\n${text}`)).toEqual([
      expect.stringMatching(`listen.cors_origins.*: ${problem.replaceAll('.', '\\.')}`),
    ]);
  });

  it.each([
    [
      '',
      "is required. The API's address, with its version path, as for an SDK. Only `http:` and `https:`; no query.",
    ],
    ['base_url: llm.example.com', 'is not a URL; write it in full, like https://api.openai.com/v1.'],
    ['base_url: "ftp://x/v1"', 'must be an http: or https: URL, not ftp:'],
    ['base_url: "http://user:pw@x/v1"', 'must not hold credentials; use api_key.'],
    ['base_url: "http://x/v1?a=1"', 'must not have a query or a fragment; parameters go under query.'],
  ])('an upstream with { %s }', (upstream, problem) => {
    expect(problemsOf(`upstreams: { main: { ${upstream} } }`)).toEqual([
      `holdfast.yaml:1:${upstream === '' ? 14 : 22}: upstreams.main.base_url: ${problem}`,
    ]);
  });

  it.each([
    [
      'headers: { Host: x }',
      'headers.Host: cannot be configured: Holdfast sets it, or leaves it out; remove it.',
    ],
    [
      'headers: { holdfast-events: chunks }',
      'headers.holdfast-events: cannot be configured: Holdfast sets it, or leaves it out; remove it.',
    ],
    [
      'headers: { Api-Key: one }, api_key: other',
      'headers.Api-Key: is a credential beside api_key; keep one of the two.',
    ],
    ['headers: { x-a: "a\\nb" }', 'headers.x-a: must not have line breaks or control characters.'],
    ['headers: { x-a: 5 }', 'headers.x-a: must be a string.'],
    ['headers: { "a b": c }', nameFault('headers.a b')],
    ['query: { api-version: 1 }', 'query.api-version: must be a string, not 1.'],
  ])('an upstream with { base_url, %s }', (settings, problem) => {
    const [found = ''] = problemsOf(`upstreams: { main: { base_url: "http://x/v1", ${settings} } }`);
    expect(found.replace(/^[^ ]+ upstreams\.main\./, '')).toBe(problem);
  });

  const CIRCLE =
    /^holdfast\.yaml:\d:\d+: upstreams\.main\.base_url: is the address this server listens on \(listen\.host .*, listen\.port 8080\): requests would go round in circles; give the provider's, or change listen\.port\.$/;
  it.each([
    ['127.0.0.1', '127.0.0.1'],
    ['127.0.0.1', 'localhost'],
    ['127.0.0.1', '0.0.0.0'],
    ['localhost', '[::1]'],
    ['0.0.0.0', '127.0.0.1'],
    ['0.0.0.0', '0.0.0.0'],
    ['::', '[::1]'],
    ['10.1.2.3', '10.1.2.3'],
    ['proxy.internal', 'proxy.internal'],
  ])('a server on %s whose upstream is on %s, its own address', (host, upstream) => {
    const text = `listen: { host: "${host}" }\nupstreams: { main: { base_url: "http://${upstream}:8080/v1" } }`;
    expect(problemsOf(text)).toEqual([expect.stringMatching(CIRCLE)]);
  });

  it.each([
    'http://127.0.0.1:8081/v1',
    'http://127.0.0.2:8080/v1',
    'http://10.0.0.1:8080/v1',
    'https://localhost:8080/v1',
  ])('%s is not the address of a server on 127.0.0.1', (base_url) => {
    expect(() => load(`upstreams: { main: { base_url: "${base_url}" } }`)).not.toThrow();
  });

  it('an unknown dialect', () => {
    expect(problemsOf('upstreams: { main: { base_url: "http://x/v1", dialect: opnai } }')).toEqual([
      `holdfast.yaml:1:47: upstreams.main.dialect: must be one of ${DIALECT_NAMES.join(', ')}, not "opnai". Did you mean "openai"?`,
    ]);
  });

  it('a bad name for an upstream', () => {
    expect(problemsOf('upstreams: { "a/b": { base_url: "http://x/v1" } }')).toEqual([
      'holdfast.yaml:1:14: upstreams.a/b: is not a usable name: it must start with a letter and have letters, digits, "-" and "_" only.',
    ]);
  });

  it.each(['', 'upstreams: {}'])('no upstream at all: %j', (text) => {
    expect(problemsOf(text).join()).toContain(
      'no upstream is configured; pass --upstream https://api.openai.com/v1',
    );
  });

  it('everything at once', () => {
    expect(problemsOf(`${BASE}clocks: { idle: 5 }\nlisten: { port: x }`)).toHaveLength(2);
  });

  it('a flag or a variable is named as the place', () => {
    const environment = { HOLDFAST_PORT: 'x' };
    const flags = [flag('admin-port', ['listen', 'admin_port'], 'y')];
    expect(problemsOf(BASE, { environment, flags })).toEqual([
      'HOLDFAST_PORT: listen.port: must be an integer, not "x".',
      '--admin-port: listen.admin_port: must be an integer, not "y".',
    ]);
  });

  it('a file that is not YAML, has a key twice, or is not there', () => {
    expect(problemsOf('a: [')[0]).toMatch(/^holdfast\.yaml:1:\d+: /);
    expect(problemsOf(`${BASE}log: {}\nlog: {}`)).toEqual(['holdfast.yaml:3:1: Map keys must be unique']);
    expect(() => loadConfiguration({ file: '/nowhere/x.yaml', environment: {} })).toThrow(
      '/nowhere/x.yaml: cannot be read (ENOENT).',
    );
  });

  it('an alias bomb', () => {
    const levels = Array.from(
      { length: 10 },
      (_, n) => `a${n + 1}: &a${n + 1} [${Array(10).fill(`*a${n}`).join(', ')}]`,
    );
    expect(problemsOf(['a0: &a0 x', ...levels].join('\n'))[0]).toContain('alias');
  });

  it('a file that is no map', () => {
    expect(problemsOf('- a')).toEqual(['must be a section with keys, not ["a"].']);
  });
});

describe('warnings', () => {
  it('an unknown variable, unless the file uses it', () => {
    const text = BASE.replace('} }', `, api_key: "\${HOLDFAST_BACKUP_KEY}" } }`);
    const environment = { HOLDFAST_BACKUP_KEY: 'key', HOLDFAST_PROT: '1', HOLDFAST_STORE: '' };
    expect(load(text, { environment }).warnings).toEqual([
      'HOLDFAST_PROT: unknown environment variable, ignored. Did you mean "HOLDFAST_PORT"?',
    ]);
  });

  it('but not what Kubernetes sets beside a Service of that name', () => {
    const environment = {
      HOLDFAST_PORT: 'tcp://10.0.0.1:8080',
      HOLDFAST_SERVICE_HOST: '10.0.0.1',
      HOLDFAST_SERVICE_PORT_HTTP: '8080',
      HOLDFAST_PORT_8080_TCP_ADDR: '10.0.0.1',
    };
    const { configuration, warnings } = load(BASE, { environment });
    expect(warnings).toEqual([]);
    expect(configuration.listen.port).toBe(8080);
  });

  it('a base URL without a path', () => {
    expect(load('upstreams: { main: { base_url: "http://localhost:8000" } }').warnings).toEqual([
      'upstreams.main.base_url: http://localhost:8000 has no path; most providers serve the API under /v1, like http://localhost:8000/v1.',
    ]);
  });

  it("a credential of the client's that two providers would get", () => {
    const route = (keys: { first?: string; second?: string }) =>
      load(`
upstreams:
  first: { base_url: "https://one.example.com/v1"${keys.first ?? ''} }
  second: { base_url: "https://two.example.com/v1"${keys.second ?? ''} }
  local: { base_url: "http://localhost:8000/v1" }
routes: [{ model: a, targets: [{ upstream: first }, { upstream: local }, { upstream: second }] }]
`).warnings;
    expect(route({})).toEqual([
      "routes[0].targets[2]: the client's own credential goes to first and, when that fails, to second; configure upstreams.second.api_key unless both are to have it.",
    ]);
    expect(route({ first: ', api_key: key' })).toEqual([]);
    expect(route({ second: ', api_key: key' })).toEqual([]);
  });

  it("a credential of the client's that only the summarising upstream would get", () => {
    const route = (target: string, key = '') =>
      load(`
upstreams:
  first: { base_url: "https://one.example.com/v1" }
  keyed: { base_url: "https://one.example.com/v1", api_key: key }
  scribe: { base_url: "https://two.example.com/v1"${key} }
routes:
  - { model: a, targets: [{ upstream: ${target} }], compression: { upstream: scribe, model: b } }
`).warnings;
    expect(route('first')).toEqual([
      "routes[0].compression: the client's own credential goes to scribe for summaries, and to no target there; configure upstreams.scribe.api_key unless scribe is to have it.",
    ]);
    expect(route('keyed')).toHaveLength(1);
    expect(route('scribe')).toEqual([]);
    expect(route('first', ', api_key: key')).toEqual([]);
  });
});
