import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { inPath } from '../debian-program.ts';
import { MAY_INSTALL, notInstalled } from '../installs.ts';
import type { ServerBinary } from '../redis/binaries.ts';

/**
 * A Go module that consists only of requirements: the parts of Kubernetes that the tests use, in compatible versions.
 */
const PROGRAMS = fileURLToPath(new URL('programs', import.meta.url));
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/holdfast-kubernetes', import.meta.url));

/** The limit for a `beforeAll` that may have to build programs, on two cores shared with other tests. */
export const BUILD_LIMIT_MS = 45 * 60_000;

// Test files run in parallel and may all get here; after waiting for the lock, they find the program built.
// Only a missing network (status 3) counts as unavailable. A failure to compile is an error.
const BUILD = `
test -x "$1" && exit 0
nice -n 10 go list -deps "$2" >/dev/null || exit 3
nice -n 10 go build -trimpath -ldflags "-s -w $3" -o "$1.new" "$2" && mv "$1.new" "$1"`;

const run = promisify(execFile);

/** `HOLDFAST_HELM`, else the `helm` on the PATH, else a cached build of Helm, which takes minutes. */
export function helmBinary(): Promise<ServerBinary> {
  const path = process.env.HOLDFAST_HELM ?? inPath('helm');
  return path === undefined ? built('helm', 'helm.sh/helm/v4/cmd/helm') : Promise.resolve({ path });
}

/** Always a cached build of the same release, so that the answers are those of a known API. */
export function apiServerBinary(): Promise<ServerBinary> {
  const [, version = ''] = /k8s\.io\/kubernetes (\S+)/.exec(goModuleFile()) ?? [];
  // Helm asks the server for its release, which a plain Go build leaves out.
  const variables = `-X k8s.io/component-base/version.gitVersion=${version}`;
  return built(`kube-apiserver-${version}`, 'k8s.io/kubernetes/cmd/kube-apiserver', variables);
}

/** The etcd version that this API server requires, built like `apiServerBinary`. */
export function etcdBinary(): Promise<ServerBinary> {
  return built('etcd', 'go.etcd.io/etcd/server/v3');
}

const goModuleFile = (): string => readFileSync(join(PROGRAMS, 'go.mod'), 'utf8');

/** `variables` are the Go linker's flags. */
async function built(name: string, goPackage: string, variables = ''): Promise<ServerBinary> {
  const versions = createHash('sha256').update(goModuleFile()).digest('hex');
  const directory = join(CACHE, versions.slice(0, 12));
  const path = join(directory, name);
  if (existsSync(path)) return { path };
  if (!MAY_INSTALL) return { missing: notInstalled(name) };
  const tool = ['go', 'flock', 'nice'].find((tool) => inPath(tool) === undefined);
  if (tool !== undefined)
    return { missing: `there is no ${name} on this machine, and no ${tool} to build it` };
  mkdirSync(directory, { recursive: true });
  try {
    const build = ['sh', '-c', BUILD, 'sh', path, goPackage, variables];
    await run('flock', [`${path}.lock`, ...build], { cwd: PROGRAMS, maxBuffer: 1 << 26 });
  } catch (error) {
    const { code, stderr } = error as { code?: number; stderr?: string };
    if (code !== 3) throw error;
    const reasons = (stderr ?? '').split('\n').filter((line) => !line.startsWith('go: downloading '));
    return { missing: `there is no ${name} on this machine, nor its source: ${reasons.join(' ').trim()}` };
  }
  return { path };
}
