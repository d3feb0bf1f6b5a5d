import { once } from 'node:events';
import { createServer } from 'node:net';
import { adminHost, type Configuration } from '../config/configuration.ts';
import { isObject, parsedJson } from '../lib/json.ts';
import { type Finding, Findings } from './finding.ts';
import { bounded, reasonOf } from './measuring.ts';

const ANSWER_MAX_MS = 3000;
const LOOPBACK = /^(localhost|127(\.\d+){3}|::1)$/;
const ANY = /^(0\.0\.0\.0|::)$/;

/** Whether serve could listen, and who could reach the admin port then. */
export async function examinePorts({ listen }: Configuration): Promise<Finding[]> {
  const findings = new Findings('ports');
  const admin_host = adminHost(listen);
  await examinePort(findings, 'api', listen.host, listen.port, isOurApi);
  await examinePort(findings, 'admin', admin_host, listen.admin_port, isOurAdmin);
  if (LOOPBACK.test(admin_host))
    findings.ok('admin exposure', `the admin port is for this machine alone (${admin_host})`);
  else
    findings.warn(
      'admin exposure',
      `the admin port is open to whoever reaches ${ANY.test(admin_host) ? 'any address of this machine' : admin_host}, and asks nobody who they are`,
      'let only Prometheus, probes and operators reach it (a firewall, a NetworkPolicy), or set listen.admin_host to 127.0.0.1.',
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
  if (port === 0) return findings.ok(`${name} port`, 'a free one will be picked');
  const code = await listeningFault(host, port);
  const address = `${host}:${port}`;
  if (code === undefined) return findings.ok(`${name} port`, `${address} is free`);
  if (code === 'EADDRINUSE' && (await isOurs(rootOf(host, port))))
    return findings.ok(`${name} port`, `a replica of Holdfast listens on ${address} already`);
  return findings.fail(
    `${name} port`,
    `${address} cannot be listened on (${code})`,
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

/** Empty if there is none. */
async function documentAt(url: string): Promise<Record<string, unknown>> {
  try {
    const text = await bounded(ANSWER_MAX_MS, async (signal) => (await fetch(url, { signal })).text());
    const document = parsedJson(text);
    return isObject(document) ? document : {};
  } catch {
    return {};
  }
}
