import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { APPLICATION_CHART, CHART, Chart } from './chart.ts';
import { configurationOf, kindsOf, LEAST_RIGHTS, only, podOf, proxyOf, type Resource } from './resource.ts';

const chart = Chart.use();
const GUIDE = readFileSync(fileURLToPath(new URL('../../docs/sidecar.md', import.meta.url)), 'utf8');

/** The first fenced block in this language that contains the text. */
function block(language: string, text: string): string {
  const blocks = [...GUIDE.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, name, code = '']) => ({
    name,
    code,
  }));
  const found = blocks.find(({ name, code }) => name === language && code.includes(text));
  if (!found) throw new Error(`the guide has no ${language} with ${text}`);
  return found.code;
}

describe('a sidecar', () => {
  it('is an init container that keeps running, with the API for its own pod only', async () => {
    const resources = await chart.renderApplication();
    const { spec } = podOf(resources);
    expect(spec.initContainers?.map(({ name, restartPolicy }) => ({ name, restartPolicy }))).toEqual([
      { name: 'holdfast', restartPolicy: 'Always' },
    ]);
    expect(parse(configurationOf(resources)).listen).toMatchObject({
      host: '127.0.0.1',
      admin_host: '0.0.0.0',
    });
    expect(proxyOf(podOf(resources)).ports).toEqual([{ name: 'holdfast-admin', containerPort: 9090 }]);
  });

  it('may do nothing that it need not, whatever the rest of the pod may', async () => {
    expect(proxyOf(podOf(await chart.renderApplication())).securityContext).toEqual(LEAST_RIGHTS);
  });

  it('comes from the registry that the chart of the application names for all of them', async () => {
    const resources = await chart.renderApplication({ global: { imageRegistry: 'mirror.example.com' } });
    expect(proxyOf(podOf(resources)).image).toMatch(/^mirror\.example\.com\/holdfast:/);
  });

  it('comes with a configuration, and nothing of a gateway', async () => {
    expect(kindsOf(await chart.render('sidecar.yaml'))).toEqual(['ConfigMap']);
  });

  it('waits for no new requests when it goes, unless it is configured to', async () => {
    const limits = async (given: object) =>
      parse(configurationOf(await chart.renderApplication({ holdfast: { config: { limits: given } } })))
        .limits;
    expect(await limits({})).toEqual({ drain_ms: 5000, drain_delay_ms: 0 });
    expect(await limits({ drain_delay_ms: 100 })).toEqual({ drain_ms: 5000, drain_delay_ms: 100 });
  });

  it('is found by the PodMonitor of the chart', async () => {
    const resources = await chart.renderApplication({
      holdfast: { metrics: { podMonitor: { enabled: true } } },
    });
    const { selector, podMetricsEndpoints } = only(resources, 'PodMonitor').spec as {
      selector: { matchLabels: object };
      podMetricsEndpoints: { port: string }[];
    };
    expect(podOf(resources).metadata.labels).toMatchObject(selector.matchLabels);
    expect(proxyOf(podOf(resources)).ports?.map(({ name }) => name)).toContain(podMetricsEndpoints[0]?.port);
  });

  it('comes anew with a new configuration', async () => {
    const checksum = async (level: string) =>
      podOf(await chart.renderApplication({ holdfast: { config: { log: { level } } } })).metadata.annotations;
    const [info, debug] = await Promise.all([checksum('info'), checksum('debug')]);
    expect(info).not.toEqual(debug);
  });

  it('is put into an application that has no chart, where its containers find it', async () => {
    const application = {
      enabled: true,
      containers: [
        { name: 'agent', image: 'agent', env: [{ name: 'OPENAI_BASE_URL', value: 'http://elsewhere/v1' }] },
        { name: 'other', image: 'other' },
      ],
      podSpec: {
        hostname: 'agent',
        volumes: [{ name: 'own' }],
        initContainers: [{ name: 'first', image: 'first' }],
      },
    };
    const { spec } = podOf(await chart.renderWith({ mode: 'sidecar', sidecar: { application } }));
    expect(spec.hostname).toBe('agent');
    expect(spec.initContainers?.map(({ name }) => name)).toEqual(['holdfast', 'first']);
    expect(spec.volumes?.map((volume) => (volume as { name: string }).name)).toContain('own');
    const openai = { name: 'OPENAI_BASE_URL', value: 'http://127.0.0.1:8080/v1' };
    const anthropic = { name: 'ANTHROPIC_BASE_URL', value: 'http://127.0.0.1:8080' };
    expect(spec.containers.map(({ env }) => env)).toEqual([
      [{ name: 'OPENAI_BASE_URL', value: 'http://elsewhere/v1' }, anthropic],
      [openai, anthropic],
    ]);
    const silent = await chart.renderWith({ mode: 'sidecar', sidecar: { setBaseUrls: false, application } });
    expect(podOf(silent).spec.containers[1]?.env).toEqual([]);
  });
});

describe('the guide', () => {
  it('shows by hand what the chart makes', async () => {
    const shown = parseAllDocuments(block('yaml', 'kind: Deployment')).map((each) =>
      each.toJS(),
    ) as Resource[];
    const made = await chart.renderApplication({ holdfast: { fullnameOverride: 'agent-holdfast' } });
    expect(proxyOf(podOf(shown))).toEqual(proxyOf(podOf(made)));
    expect(parse(configurationOf(shown))).toEqual(parse(configurationOf(made)));
    expect(podOf(shown).spec).toEqual(podOf(made).spec);
  });

  it.each([
    ['Chart.yaml', 'dependencies:'],
    ['values.yaml', 'holdfast:\n'],
    ['templates/deployment.yaml', '$holdfast :='],
  ])('shows what stands in %s of the chart that it is about', (file, text) => {
    expect(readFileSync(join(CHART, APPLICATION_CHART, file), 'utf8')).toContain(block('text', text));
  });

  it('names all templates that there are', () => {
    const templates = readFileSync(join(CHART, 'templates/_sidecar.tpl'), 'utf8');
    for (const [, name] of templates.matchAll(/define "(.*)"/g)) expect(GUIDE).toContain(`include "${name}"`);
  });

  it.each([
    ['an application without a chart', 'application:', ['ConfigMap', 'Deployment']],
    ['injection', 'injection:', ['ConfigMap', 'MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding']],
  ])('shows values for %s that render', async (_, text, kinds) => {
    expect(kindsOf(await chart.render(parse(block('yaml', text))))).toEqual(kinds);
  });
});
