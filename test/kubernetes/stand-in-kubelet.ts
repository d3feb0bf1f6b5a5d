import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { vi } from 'vitest';
import type { PodSpec } from '../helm/resource.ts';
import type { ApiServer } from './api-server.ts';

const run = promisify(execFile);
const POD_LIMIT_MS = 60_000;

interface ServiceSpec {
  readonly ports: readonly { readonly port: number; readonly targetPort: string }[];
}

/**
 * Runs the container of one Node pod as a process on this machine. It resolves Services through the API server;
 * `endpoints` gives the URL behind each target port, by name.
 */
export class StandInKubelet {
  readonly #server: ApiServer;
  readonly #namespace: string;
  readonly #endpoints: Readonly<Record<string, string>>;

  constructor(server: ApiServer, namespace: string, endpoints: Readonly<Record<string, string>>) {
    this.#server = server;
    this.#namespace = namespace;
    this.#endpoints = endpoints;
  }

  /**
   * Waits for the pod, runs it until it exits, and reports its phase to the server. Resolves to its output.
   * `lastArgument` replaces the pod's last argument.
   */
  async runOnce(name: string, lastArgument?: string): Promise<string> {
    const path = this.#path('pods', name);
    const { args = [] } = await vi.waitUntil(async () => containerOf(await this.#server.request(path)), {
      timeout: POD_LIMIT_MS,
    });
    const given = lastArgument === undefined ? args : args.with(-1, lastArgument);
    const words = await Promise.all(given.map((argument) => this.#resolved(argument)));
    const { phase, stdout } = await run(process.execPath, words).then(
      ({ stdout }) => ({ phase: 'Succeeded', stdout }),
      ({ stdout }) => ({ phase: 'Failed', stdout }),
    );
    const body = JSON.stringify({ status: { phase } });
    const contentType = 'application/merge-patch+json';
    const { status } = await this.#server.request(`${path}/status`, { method: 'PATCH', contentType, body });
    if (status !== 200) throw new Error(`${name}: its phase was not taken: ${status}`);
    return stdout;
  }

  /** Replaces an argument that is a Service's URL with the URL behind it. */
  async #resolved(argument: string): Promise<string> {
    const [, host, port] = /^http:\/\/([^:/]+):(\d+)$/.exec(argument) ?? [];
    if (host === undefined) return argument;
    const { status, body } = await this.#server.request(this.#path('services', host));
    if (status !== 200) throw new Error(`there is no Service ${host}`);
    const { ports } = (body as { spec: ServiceSpec }).spec;
    const endpoint = this.#endpoints[ports.find((one) => one.port === Number(port))?.targetPort ?? ''];
    if (endpoint === undefined) throw new Error(`nothing is behind port ${port} of the Service ${host}`);
    return endpoint;
  }

  #path(resource: string, name: string): string {
    return `/api/v1/namespaces/${this.#namespace}/${resource}/${name}`;
  }
}

function containerOf({ status, body }: { readonly status: number; readonly body: unknown }) {
  return status === 200 ? (body as { spec: PodSpec }).spec.containers[0] : undefined;
}
