import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import net, { type Socket } from 'node:net';
import tls, { type SecureContext, type TLSSocket } from 'node:tls';
import type { ConnectionSettings } from '../config/load.ts';
import { isLoopback } from '../lib/host-name.ts';
import { environmentProxy } from '../proxy/upstream/connections.ts';
import { bounded, type Finding, type Findings, reasonOf, rounded_ms } from './finding.ts';

const STEP_MAX_MS = 10_000;
const DAY_MS = 86_400_000;
const EXPIRY_NEAR_DAYS = 14;

/** Tests name, connection, certificate and protocol, in this order. Returns false if the upstream can't be reached. */
export async function examineAddress(
  findings: Findings,
  base_url: string,
  { secure, proxy }: ConnectionSettings,
): Promise<boolean> {
  const { protocol, hostname, port } = new URL(base_url);
  const proxied = proxy ?? (isLoopback(hostname) ? undefined : environmentProxy());
  if (proxied !== undefined) {
    findings.skip(
      'tcp',
      `not tested: the proxy at ${URL.parse(proxied)?.host ?? 'an unknown address'} makes the connections`,
    );
    return true;
  }
  const isSecure = protocol === 'https:';
  const host = hostname.replace(/^\[|\]$/g, '');
  const number = Number(port || (isSecure ? 443 : 80));
  if (!(await examineName(findings, host)) || !(await examineConnection(findings, host, number)))
    return false;
  if (isSecure) return examineTls(findings, host, number, secure);
  findings.ok('http', 'HTTP/1.1 without TLS: each stream needs its own connection', { protocol: 'http/1.1' });
  return true;
}

async function examineName(findings: Findings, host: string): Promise<boolean> {
  if (net.isIP(host) !== 0) return true;
  const began_ms = performance.now();
  try {
    const found = await bounded(STEP_MAX_MS, () => lookup(host, { all: true }));
    const lookup_ms = rounded_ms(performance.now() - began_ms);
    const addresses = found.map(({ address }) => address).join(', ');
    findings.ok('dns', `${host} resolves to ${addresses} (${lookup_ms} ms)`, { lookup_ms });
    return true;
  } catch (error) {
    findings.fail(
      'dns',
      `can't resolve ${host} (${reasonOf(error)})`,
      "check the host in base_url, and this machine's resolver.",
    );
    return false;
  }
}

async function examineConnection(findings: Findings, host: string, port: number): Promise<boolean> {
  const began_ms = performance.now();
  let socket: Socket | undefined;
  try {
    await bounded(STEP_MAX_MS, async (signal) => {
      socket = net.connect({ host, port });
      await once(socket, 'connect', { signal });
    });
    const connect_ms = rounded_ms(performance.now() - began_ms);
    findings.ok('tcp', `connected to port ${port} in ${connect_ms} ms`, { connect_ms });
    return true;
  } catch (error) {
    findings.fail(
      'tcp',
      `can't connect to port ${port} of ${host} (${reasonOf(error)})`,
      'check the host and port in base_url, firewalls and network policies; if you need a proxy, set it as the `proxy` of this upstream.',
    );
    return false;
  } finally {
    socket?.on('error', () => {}).destroy();
  }
}

async function examineTls(
  findings: Findings,
  host: string,
  port: number,
  secure: SecureContext | undefined,
): Promise<boolean> {
  const began_ms = performance.now();
  let socket: TLSSocket | undefined;
  try {
    await bounded(STEP_MAX_MS, async (signal) => {
      socket = tls.connect({
        host,
        port,
        ...(net.isIP(host) === 0 && { servername: host }),
        ALPNProtocols: ['h2', 'http/1.1'],
        ...(secure && { secureContext: secure }),
      });
      await once(socket, 'secureConnect', { signal });
    });
    if (!socket) return false;
    const handshake_ms = rounded_ms(performance.now() - began_ms);
    examineCertificate(findings, socket, handshake_ms);
    examineProtocol(findings, socket.alpnProtocol || 'http/1.1');
    return true;
  } catch (error) {
    findings.fail('tls', `no secure connection (${reasonOf(error)})`, tlsRemedy(reasonOf(error)));
    return false;
  } finally {
    socket?.on('error', () => {}).destroy();
  }
}

function examineCertificate(findings: Findings, socket: TLSSocket, handshake_ms: number): Finding {
  const valid_to_ms = Date.parse(socket.getPeerCertificate().valid_to);
  const days_left = Math.floor((valid_to_ms - Date.now()) / DAY_MS);
  const seen = `${socket.getProtocol()} in ${handshake_ms} ms, certificate valid for ${days_left} days`;
  const figures = { handshake_ms, days_left };
  if (days_left >= EXPIRY_NEAR_DAYS) return findings.ok('tls', seen, figures);
  return findings.warn('tls', seen, 'renew the certificate.', figures);
}

function examineProtocol(findings: Findings, protocol: string): Finding {
  if (protocol === 'h2') return findings.ok('http', 'HTTP/2: streams share connections', { protocol: 'h2' });
  return findings.warn(
    'http',
    'HTTP/1.1: each stream needs its own connection and file descriptor',
    'do nothing if you intend this; otherwise enable HTTP/2 (ALPN h2) where TLS ends.',
    { protocol: 'http/1.1' },
  );
}

function tlsRemedy(code: string): string {
  if (/SELF_SIGNED|UNABLE_TO|ISSUER/.test(code))
    return 'if its certificate authority is private, name it in ca_file; otherwise something intercepts the connection.';
  if (/EXPIRED|NOT_YET_VALID/.test(code)) return "renew the certificate, and check this machine's clock.";
  if (/ALTNAME/.test(code)) return 'use a name in base_url that the certificate contains.';
  if (/WRONG_VERSION|EPROTO|PACKET_LENGTH/.test(code))
    return 'if that port has no TLS, write http: in base_url.';
  return 'check the server that terminates TLS there.';
}
