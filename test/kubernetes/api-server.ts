import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { freePort } from '../redis/free-port.ts';
import { ServerProcess } from './server-process.ts';

const START_LIMIT_MS = 180_000;
const POLL_MS = 100;
const STARTS_TRIED = 5;

export interface ApiServerBinaries {
  readonly etcd: string;
  readonly apiServer: string;
}

/** The API server's answer to one request. `warnings` are its `Warning` headers. */
export interface ApiAnswer {
  readonly status: number;
  readonly warnings: readonly string[];
  readonly body: unknown;
}

export interface ApiRequest {
  readonly method?: 'GET' | 'PATCH';
  readonly contentType?: string;
  readonly body?: string;
}

/**
 * A real kube-apiserver with its own etcd, on loopback. There is no other part of a cluster: objects are admitted and
 * stored, but no controller acts on them.
 */
export class ApiServer {
  readonly #directory = mkdtempSync(join(tmpdir(), 'holdfast-kubernetes-'));
  readonly #token = randomBytes(16).toString('hex');
  readonly #stopped = new AbortController();
  #processes: readonly ServerProcess[] = [];
  #url = '';
  #agent: Agent | undefined;

  private constructor() {}

  /** Resolves once the server is ready. The caller stops it. */
  static async start(binaries: ApiServerBinaries): Promise<ApiServer> {
    for (let attempt = 1; ; attempt++) {
      const server = new ApiServer();
      try {
        await server.#start(binaries);
        return server;
      } catch (error) {
        await server.stop();
        // Another process may have taken a port in the meantime.
        if (attempt === STARTS_TRIED || !/in use/i.test((error as Error).message)) throw error;
      }
    }
  }

  async request(
    path: string,
    { method = 'GET', contentType = 'application/json', body }: ApiRequest = {},
  ): Promise<ApiAnswer> {
    const answer = await request(new URL(path, this.#url), {
      method,
      headers: { authorization: `Bearer ${this.#token}`, 'content-type': contentType },
      ...(body === undefined ? {} : { body }),
      ...(this.#agent ? { dispatcher: this.#agent } : {}),
    });
    const text = await answer.body.text();
    const isJson = String(answer.headers['content-type']).startsWith('application/json');
    return {
      status: answer.statusCode,
      warnings: [answer.headers.warning ?? []].flat(),
      body: isJson ? JSON.parse(text) : text,
    };
  }

  /** Server-side apply of one manifest, in YAML or JSON, with every conflict forced. */
  apply(
    path: string,
    manifest: string,
    parameters: Readonly<Record<string, string>> = {},
  ): Promise<ApiAnswer> {
    const query = new URLSearchParams({ fieldManager: 'holdfast-test', force: 'true', ...parameters });
    const contentType = 'application/apply-patch+yaml';
    return this.request(`${path}?${query}`, { method: 'PATCH', contentType, body: manifest });
  }

  /** Writes a file with which `helm` and `kubectl` connect as the administrator. Deleted when the server stops. */
  kubeconfig(): string {
    const cluster = { server: this.#url, 'certificate-authority': this.#certificate };
    const file = join(this.#directory, 'kubeconfig.json');
    const text = JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'test',
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
      clusters: [{ name: 'test', cluster }],
      users: [{ name: 'test', user: { token: this.#token } }],
    });
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#agent?.destroy();
    await Promise.all(this.#processes.map((process) => process.kill()));
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #start({ etcd, apiServer }: ApiServerBinaries): Promise<void> {
    const store = `http://127.0.0.1:${await freePort()}`;
    const peer = `http://127.0.0.1:${await freePort()}`;
    const port = await freePort();
    this.#url = `https://127.0.0.1:${port}`;
    this.#processes = [
      new ServerProcess(etcd, etcdWords(join(this.#directory, 'etcd'), store, peer)),
      new ServerProcess(apiServer, this.#apiServerWords(store, port)),
    ];
    await Promise.race([this.#ready(), ...this.#processes.map((process) => process.ended)]);
  }

  #apiServerWords(store: string, port: number): string[] {
    const [keys, tokens] = [join(this.#directory, 'accounts.pem'), join(this.#directory, 'tokens.csv')];
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    writeFileSync(keys, privateKey.export({ type: 'pkcs1', format: 'pem' }));
    writeFileSync(tokens, `${this.#token},test,test,system:masters\n`, { mode: 0o600 });
    return [
      `--etcd-servers=${store}`,
      '--bind-address=127.0.0.1',
      '--advertise-address=127.0.0.1',
      '--endpoint-reconciler-type=none',
      `--secure-port=${port}`,
      // The server generates its certificate in this directory.
      `--cert-dir=${this.#directory}`,
      `--token-auth-file=${tokens}`,
      '--anonymous-auth=false',
      '--authorization-mode=RBAC',
      '--service-cluster-ip-range=10.0.0.0/24',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${keys}`,
      `--service-account-signing-key-file=${keys}`,
      // No controller creates the default service account of a namespace.
      '--disable-admission-plugins=ServiceAccount',
    ];
  }

  /** The path of the certificate that the server generates. */
  get #certificate(): string {
    return join(this.#directory, 'apiserver.crt');
  }

  async #ready(): Promise<void> {
    const signal = AbortSignal.any([AbortSignal.timeout(START_LIMIT_MS), this.#stopped.signal]);
    for (; ; await sleep(POLL_MS, undefined, { signal })) {
      if (!existsSync(this.#certificate)) continue;
      const ca = readFileSync(this.#certificate);
      this.#agent ??= new Agent({ connect: { ca } });
      const answer = await this.request('/readyz').catch(() => undefined);
      if (answer?.status === 200) return;
    }
  }
}

function etcdWords(directory: string, client: string, peer: string): string[] {
  return [
    `--data-dir=${directory}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    '--unsafe-no-fsync',
    '--log-level=error',
  ];
}
