import { networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { adminHost } from '../src/config/configuration.ts';
import { loadConfiguration } from '../src/config/load.ts';
import { connect } from './http-peer.ts';
import { needs } from './needs.ts';
import { NO_UPSTREAM_URL, startReplica, upstreamsAt } from './replica.ts';

const UPSTREAM = upstreamsAt(NO_UPSTREAM_URL);
const LISTEN = { port: 0, admin_port: 0 };

/** An address of this machine that other machines can reach. */
const publicInterface = Object.values(networkInterfaces())
  .flat()
  .find((each) => each?.family === 'IPv4' && !each.internal) ?? {
  missing: 'this machine has no address that others can reach',
};

describe('the address of the admin port', () => {
  it.each([
    ['127.0.0.1', '127.0.0.1'],
    ['localhost', 'localhost'],
    ['10.1.2.3', '10.1.2.3'],
    ['fd00::1', 'fd00::1'],
    ['holdfast.example.com', 'holdfast.example.com'],
    ['0.0.0.0', '127.0.0.1'],
    ['0', '127.0.0.1'],
    ['::', '::1'],
    ['0:0:0:0:0:0:0:0', '::1'],
    ['::ffff:0.0.0.0', '127.0.0.1'],
  ])('of a replica on %s is %s', (host, expected) => {
    expect(adminHost({ host, port: 1, admin_port: 2 })).toBe(expected);
  });

  it('is the configured one wherever there is one', () => {
    expect(adminHost({ host: '0.0.0.0', admin_host: '0.0.0.0', port: 1, admin_port: 2 })).toBe('0.0.0.0');
    const environment = {
      HOLDFAST_UPSTREAM: NO_UPSTREAM_URL,
      HOLDFAST_HOST: '::',
      HOLDFAST_ADMIN_HOST: '10.0.0.1',
    };
    expect(adminHost(loadConfiguration({ environment }).configuration.listen)).toBe('10.0.0.1');
  });

  it('is not public unless that was asked for', needs(publicInterface), async () => {
    if ('missing' in publicInterface) return;
    const { address } = publicInterface;
    const reach = (url: string) => connect(`http://${address}:${new URL(url).port}`);
    const usual = await startReplica({ ...UPSTREAM, listen: { ...LISTEN, host: '0.0.0.0' } });
    await reach(usual.api);
    await expect(reach(usual.admin)).rejects.toThrow('ECONNREFUSED');
    expect((await fetch(`${usual.admin}/livez`)).status).toBe(200);
    const asked = await startReplica({ ...UPSTREAM, listen: { ...LISTEN, admin_host: '0.0.0.0' } });
    await reach(asked.admin);
    await expect(reach(asked.api)).rejects.toThrow('ECONNREFUSED');
  });

  it('may be one that there is not, and the error names the key', async () => {
    const listen = { ...LISTEN, admin_host: '192.0.2.1' };
    await expect(startReplica({ ...UPSTREAM, listen })).rejects.toThrow(
      'listen.admin_port: cannot listen on 192.0.2.1 port 0 (EADDRNOTAVAIL); this machine has no such address: choose another with --host or --admin-host.',
    );
  });
});
