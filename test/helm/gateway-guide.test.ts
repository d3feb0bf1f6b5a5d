import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { completeConfiguration } from '../../src/config/load.ts';
import { temporaryDirectory } from '../cli-process.ts';
import { Chart } from './chart.ts';
import { configurationOf, kindsOf, only, podOf, proxyOf } from './resource.ts';

const chart = Chart.use();
const run = promisify(execFile);

/** Starts a server that gives every request this answer until the test ends; returns its origin. */
async function answering(document: object, see: (request: IncomingMessage) => unknown): Promise<string> {
  const server = createServer(async (request, response) => {
    await see(request);
    response.setHeader('content-type', 'application/json').end(JSON.stringify(document));
  });
  onTestFinished(() => void server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('the guide to the gateway', () => {
  const guide = readFileSync(fileURLToPath(new URL('../../docs/kubernetes.md', import.meta.url)), 'utf8');
  const blocks = [...guide.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, code = '']) => [
    Object.keys(parse(code)).join(', '),
    code,
  ]);

  it('says when a pod goes what the chart says', async () => {
    const resources = await chart.renderWith({});
    const { terminationGracePeriodSeconds } = podOf(resources).spec;
    const { drain_ms } = parse(configurationOf(resources)).limits;
    const { drain_delay_ms } = completeConfiguration(parse(configurationOf(resources))).limits;
    const sleep = proxyOf(podOf(resources)).lifecycle?.preStop.sleep.seconds ?? 0;
    const at = (drained_ms: number) => sleep + drained_ms / 1000;
    const moments = [0, sleep, at(drain_delay_ms), at(drain_ms), terminationGracePeriodSeconds];
    const table = guide.slice(guide.indexOf('## When a pod goes'));
    expect([...table.matchAll(/^\| (\d+) s \|/gm)].map(([, seconds]) => Number(seconds))).toEqual(moments);
    expect(table).toContain(`\`limits.drain_ms\` (${drain_ms})`);
    expect(table).toContain(`\`limits.drain_delay_ms\` (${drain_delay_ms})`);
    expect(table).toContain(`\`preStop.sleepSeconds\` (${sleep})`);
  });

  describe('has commands that exchange the identity of a pod for a key', () => {
    const TOKEN = { access_token: 'ya29.token', expires_in: 3599, token_type: 'Bearer' };
    const valuesOf = (upstream: string) =>
      parse(blocks.find(([, code]) => code?.includes(`  ${upstream}:\n`))?.[1] ?? '');

    it('on GKE, at the metadata server', async () => {
      const asked: IncomingMessage[] = [];
      const origin = await answering(TOKEN, (request) => asked.push(request));
      const [, ...words] = valuesOf('vertex').config.upstreams.vertex.api_key_command as string[];
      const [option = '', script = ''] = words;
      const { stdout } = await run(process.execPath, [
        option,
        script.replace('http://metadata.google.internal', origin),
      ]);
      expect(JSON.parse(stdout)).toEqual(TOKEN);
      expect(asked.map(({ url, headers }) => [url, headers['metadata-flavor']])).toEqual([
        ['/computeMetadata/v1/instance/service-accounts/default/token', 'Google'],
      ]);
    });

    it('on AKS, at Entra', async () => {
      const asked: URLSearchParams[] = [];
      const origin = await answering(TOKEN, async (request) => {
        asked.push(new URLSearchParams(await text(request)));
      });
      const resources = await chart.renderWith(valuesOf('azure'));
      const script = only(resources, 'ConfigMap', 'release-holdfast-keys').data?.['azure.mjs'] ?? '';
      const directory = temporaryDirectory();
      const [file, token] = [join(directory, 'azure.mjs'), join(directory, 'token')];
      writeFileSync(file, script);
      writeFileSync(token, 'the token of the pod');
      const env = {
        AZURE_AUTHORITY_HOST: `${origin}/`,
        AZURE_TENANT_ID: 'tenant',
        AZURE_CLIENT_ID: 'client',
        AZURE_FEDERATED_TOKEN_FILE: token,
      };
      const { stdout } = await run(process.execPath, [file], { env });
      expect(JSON.parse(stdout)).toEqual(TOKEN);
      expect(asked.map((body) => [body.get('client_id'), body.get('client_assertion')])).toEqual([
        ['client', 'the token of the pod'],
      ]);
    });
  });

  it.each(blocks)('shows values that render: %s', async (_, code = '') => {
    expect(kindsOf(await chart.renderWith(parse(code)))).toContain('Deployment');
  });
});
