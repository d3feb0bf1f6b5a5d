import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { adminHost, type Configuration } from '../config/configuration.ts';
import { isObject, parsedJson } from '../lib/json.ts';
import { bounded, type Finding, Findings, reasonOf } from './finding.ts';

/** The oldest version that package.json accepts. */
const NODE_MIN = [22, 19] as const;
/** For the ports, the store, the log and Node's own threads. */
const OWN_DESCRIPTORS = 64;

/** Tests the machine that `serve` would run on. */
export function examineMachine({ limits }: Configuration, node_version = process.versions.node): Finding[] {
  const findings = new Findings('machine');
  examineNode(findings, node_version);
  examineDescriptors(findings, limits.connections);
  return findings.all;
}

function examineNode(findings: Findings, version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [major_min, minor_min] = NODE_MIN;
  if (major > major_min || (major === major_min && minor >= minor_min))
    return findings.ok('node', `Node ${version}`);
  return findings.fail(
    'node',
    `Holdfast doesn't support Node ${version}`,
    `use Node ${major_min}.${minor_min} or later.`,
  );
}

/** Every stream takes a client connection, and an upstream connection unless HTTP/2 shares one. */
function examineDescriptors(findings: Findings, connections: number): Finding {
  const limit = descriptorLimit();
  if (limit === undefined) return findings.skip('descriptors', "this system doesn't show its limit");
  const wanted = 2 * connections + OWN_DESCRIPTORS;
  const figures = { limit, wanted, connections };
  if (limit >= wanted)
    return findings.ok('descriptors', `${limit} files can be open, and Holdfast may need ${wanted}`, figures);
  return findings.warn(
    'descriptors',
    `only ${limit} files can be open, but limits.connections (${connections}) may need ${wanted}`,
    `raise the limit (ulimit -n, LimitNOFILE=), or set limits.connections to ${Math.max(1, Math.floor((limit - OWN_DESCRIPTORS) / 2))}.`,
    figures,
  );
}

/** Node has already raised the soft limit as far as it may. */
function descriptorLimit(): number | undefined {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const soft = /^Max open files\s+(\S+)/m.exec(limits)?.[1];
    return soft === 'unlimited' ? Number.MAX_SAFE_INTEGER : soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}

const ANSWER_MAX_MS = 3000;
const LOOPBACK = /^(localhost|127(\.\d+){3}|::1)$/;
const ANY = /^(0\.0\.0\.0|::)$/;

/** Whether `serve` could listen, and which hosts could then reach the admin port. */
export async function examinePorts({ listen }: Configuration): Promise<Finding[]> {
  const findings = new Findings('ports');
  const admin_host = adminHost(listen);
  await examinePort(findings, 'api', listen.host, listen.port, isOurApi);
  await examinePort(findings, 'admin', admin_host, listen.admin_port, isOurAdmin);
  if (LOOPBACK.test(admin_host))
    findings.ok('admin exposure', `only this machine can reach the admin port (${admin_host})`);
  else
    findings.warn(
      'admin exposure',
      `every host that reaches ${ANY.test(admin_host) ? 'any address of this machine' : admin_host} can use the admin port, which has no authentication`,
      'restrict it to Prometheus, probes and operators (a firewall, a NetworkPolicy), or set listen.admin_host to 127.0.0.1.',
    );
  return findings.all;
}

async function examinePort(
  findings: Findings,
  name: string,
  host: string,
  port: number,
  isOurs: (root: string) => Promise<boolean>,
): Promise<Finding> {
  if (port === 0) return findings.ok(`${name} port`, 'serve will pick a free one');
  const code = await listeningFault(host, port);
  const address = `${host}:${port}`;
  if (code === undefined) return findings.ok(`${name} port`, `${address} is free`);
  if (code === 'EADDRINUSE' && (await isOurs(rootOf(host, port))))
    return findings.ok(`${name} port`, `a Holdfast replica already listens on ${address}`);
  return findings.fail(
    `${name} port`,
    `can't listen on ${address} (${code})`,
    REMEDIES[code] ?? 'choose another address.',
  );
}

const REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'stop the other process, or choose another port with --port or --admin-port.',
  EACCES: 'choose a port above 1023.',
  EADDRNOTAVAIL: 'this machine has no such address: choose another with --host or --admin-host.',
};

async function listeningFault(host: string, port: number): Promise<string | undefined> {
  const server = createServer();
  try {
    server.listen({ host, port });
    await once(server, 'listening');
    return undefined;
  } catch (error) {
    return reasonOf(error);
  } finally {
    server.close();
  }
}

function rootOf(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

const isOurAdmin = async (root: string): Promise<boolean> => (await documentAt(root)).name === 'holdfast';

async function isOurApi(root: string): Promise<boolean> {
  const { error } = await documentAt(`${root}/holdfast/v1/runs/none`);
  return isObject(error) && error.code === 'run_not_found';
}

/** The JSON document at this URL; empty if it has none. */
async function documentAt(url: string): Promise<Record<string, unknown>> {
  try {
    const text = await bounded(ANSWER_MAX_MS, async (signal) => (await fetch(url, { signal })).text());
    const document = parsedJson(text);
    return isObject(document) ? document : {};
  } catch {
    return {};
  }
}
