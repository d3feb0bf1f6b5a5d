/** A replica that failed is not asked first for this long, so that not every new run has to find out by itself. */
const AVOID_MS = 10_000;

/** The URL of an endpoint without `/v1` and slashes at its end; undefined if it is not the URL of a replica. */
export function rootOfEndpoint(endpoint: unknown): string | undefined {
  const url = typeof endpoint === 'string' && URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) return undefined;
  // fetch refuses credentials, and nothing can be appended to the others.
  if (url.username || url.password || url.search || url.hash) return undefined;
  return url.origin + url.pathname.replace(/(\/v1)?\/*$/, '');
}

/** The replicas, by their roots, and which of them failed lately. Shared by all runs of one `fetch`. */
export class Endpoints {
  readonly #roots: readonly string[];
  readonly #failed_ms = new Map<string, number>();

  constructor(roots: readonly string[]) {
    this.#roots = roots;
  }

  /** Where a request that names `root` goes first. */
  first(root: string): string {
    return this.hasFailed(root) ? this.after(root) : root;
  }

  /** Where to go after `root`: the next that has not failed lately, or simply the next. */
  after(root: string): string {
    const start = this.#roots.indexOf(root) + 1;
    const order = [...this.#roots.slice(start), ...this.#roots.slice(0, start)];
    return order.find((candidate) => !this.hasFailed(candidate)) ?? order[0] ?? root;
  }

  /** Lately. */
  hasFailed(root: string): boolean {
    return performance.now() - (this.#failed_ms.get(root) ?? Number.NEGATIVE_INFINITY) < AVOID_MS;
  }

  failed(root: string): void {
    this.#failed_ms.set(root, performance.now());
  }

  answered(root: string): void {
    this.#failed_ms.delete(root);
  }
}
