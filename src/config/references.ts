import type { Configuration, UpstreamConfiguration } from './configuration.ts';
import type { Problem } from './configuration-error.ts';
import { formatPath } from './key-path.ts';
import { suggestion } from './suggestion.ts';

/** What a schema cannot say: URLs, names that refer to other keys, numbers that depend on each other. */
export function checkReferences(configuration: Configuration): Problem[] {
  const { upstreams, routes, listen, recovery, checkpoint } = configuration;
  const problems: Problem[] = [];
  const report = (path: (string | number)[], message: string | undefined) => {
    if (message !== undefined) problems.push({ path: formatPath(path), message });
  };

  if (Object.keys(upstreams).length === 0) report(['upstreams'], NO_UPSTREAM);
  for (const [name, upstream] of Object.entries(upstreams)) {
    report(['upstreams', name, 'base_url'], baseUrlFault(upstream));
  }
  for (const [index, route] of routes.entries()) {
    for (const [position, target] of route.targets.entries()) {
      if (Object.hasOwn(upstreams, target.upstream)) continue;
      report(
        ['routes', index, 'targets', position, 'upstream'],
        `there is no upstream "${target.upstream}".${suggestion(target.upstream, Object.keys(upstreams)) || ` Known: ${Object.keys(upstreams).join(', ')}.`}`,
      );
    }
  }
  if (listen.port !== 0 && listen.port === listen.admin_port) {
    report(['listen', 'admin_port'], 'must differ from listen.port; 0 picks a free one.');
  }
  if (recovery.backoff_max_ms < recovery.backoff_ms) {
    report(['recovery', 'backoff_max_ms'], 'must not be less than recovery.backoff_ms.');
  }
  report(['checkpoint', 'store'], storeFault(checkpoint.store));
  return problems;
}

export const NO_UPSTREAM =
  'no upstream is configured; pass --upstream https://api.openai.com/v1, set HOLDFAST_UPSTREAM, or add one under "upstreams" in the file.';

function baseUrlFault({ base_url }: UpstreamConfiguration): string | undefined {
  if (!URL.canParse(base_url)) return 'is not a URL; write it in full, like https://api.openai.com/v1.';
  const url = new URL(base_url);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return `must be an http: or https: URL, not ${url.protocol}`;
  }
  if (url.username || url.password) return 'must not hold credentials; use api_key.';
  if (url.search || url.hash) return 'must not have a query or a fragment.';
  return undefined;
}

function storeFault(store: string): string | undefined {
  if (store === 'memory') return undefined;
  if (/^file:./.test(store) || /^rediss?(\+sentinel|\+cluster)?:\/\/./.test(store)) return undefined;
  return 'must be memory, file: and a directory, like file:./data, or a URL of Redis, like redis://localhost:6379/0.';
}

/** Things that work, but hardly as meant. */
export function doubts(configuration: Configuration): string[] {
  return Object.entries(configuration.upstreams)
    .filter(([, { base_url }]) => new URL(base_url).pathname === '/')
    .map(
      ([name, { base_url }]) =>
        `upstreams.${name}.base_url: ${base_url} has no path; most providers serve the API under /v1, like ${new URL('/v1', base_url)}.`,
    );
}
