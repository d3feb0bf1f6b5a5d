import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { descriptionOf, drawingName, SCHEMES } from '../../site/diagrams.ts';
import { DEFAULT_UPSTREAM } from '../../src/config/environment.ts';
import { loadConfiguration } from '../../src/config/load.ts';
import { CONFIGURATION_SCHEMA } from '../../src/config/schema.ts';
import { isObject } from '../../src/lib/json.ts';
import type { Missing } from '../debian-program.ts';
import { prometheusBinaries, promtool } from '../prometheus/binaries.ts';
import { ROOT, type Snippet } from './pages.ts';

export const json = ({ code }: Snippet): void => void JSON.parse(code);

/** The site shows diagrams as drawings made in advance. */
export function mermaid({ code }: Snippet): void {
  expect(descriptionOf(code)).toMatch(/\.$/);
  for (const scheme of SCHEMES) {
    const path = join(ROOT, 'site/diagrams', drawingName(code, scheme));
    if (!existsSync(path)) throw new Error('a diagram that is not drawn yet: run npm run site:diagrams');
  }
}

/** The top-level keys tell what kind of document it is. */
export async function yaml({ code }: Snippet, directory: string): Promise<Missing | undefined> {
  let missing: Missing | undefined;
  const documents = parseAllDocuments(code);
  const trees = [];
  for (const document of documents) {
    if (document.errors.length > 0) throw document.errors[0];
    trees.push(document.toJS());
  }
  for (const tree of trees) {
    if (!isObject(tree)) throw new Error('a document that is no mapping');
    if ('apiVersion' in tree) kubernetes(tree);
    else if (hasOnly(tree, Object.keys(CONFIGURATION_SCHEMA.properties ?? {})))
      configuration(code, directory);
    else if (hasOnly(tree, chartKeys())) expect(trees).toHaveLength(1);
    else if ('scrape_configs' in tree || 'groups' in tree) missing = await prometheus(code, tree, directory);
    else if ('services' in tree) compose(tree);
    else if ('model_list' in tree) litellm(tree);
    else throw new Error(`nobody knows what has the keys ${Object.keys(tree).join(', ')}`);
  }
  return missing;
}

const hasOnly = (tree: object, keys: readonly string[]): boolean =>
  Object.keys(tree).every((key) => keys.includes(key));

/** test/kubernetes validates the manifests against an API server. */
function kubernetes(tree: Record<string, unknown>): void {
  expect(tree).toMatchObject({ apiVersion: expect.any(String), kind: expect.any(String) });
  if (tree.kind !== 'Kustomization') expect(tree.metadata).toMatchObject({ name: expect.any(String) });
}

/** Webhook secrets have their own format. */
const WEBHOOK_SECRET = `whsec_${Buffer.alloc(24).toString('base64')}`;

/** Checks it as `holdfast check` does. A fragment gets the settings that every configuration needs. */
function configuration(code: string, directory: string): void {
  const file = join(mkdtempSync(join(directory, 'configuration-')), 'holdfast.yaml');
  writeFileSync(file, code);
  const names = [...code.matchAll(/\$\{(\w+)/g)].map(([, name = '']) => [
    name,
    name.startsWith('WEBHOOK') ? WEBHOOK_SECRET : `${name}-a-value-of-thirty-two-characters-or-more`,
  ]);
  const isPart = !/^upstreams:/m.test(code);
  const named = new Set([...code.matchAll(/upstream: (\w+)/g)].map(([, name = '']) => name));
  const flags = isPart
    ? [...named, ...(named.size === 0 ? [DEFAULT_UPSTREAM[1]] : [])].map((name) => ({
        path: ['upstreams', name, 'base_url'],
        text: 'https://llm.example.com/v1',
        source: 'the test',
      }))
    : [];
  const { warnings } = loadConfiguration({ file, flags, environment: Object.fromEntries(names) });
  expect(warnings).toEqual([]);
}

/** The names of the chart's values, if there is a chart. */
function chartKeys(): string[] {
  const path = join(ROOT, 'helm/holdfast/values.yaml');
  return existsSync(path) ? Object.keys(parse(readFileSync(path, 'utf8'))) : [];
}

async function prometheus(code: string, tree: object, directory: string): Promise<Missing | undefined> {
  const binaries = await prometheusBinaries();
  if ('missing' in binaries) return binaries;
  const file = join(mkdtempSync(join(directory, 'prometheus-')), 'prometheus.yaml');
  writeFileSync(file, code);
  const what = 'groups' in tree ? ['rules'] : ['config', '--syntax-only'];
  await promtool(binaries.promtool, 'check', ...what, file);
  return undefined;
}

function compose({ services }: Record<string, unknown>): void {
  if (!isObject(services)) throw new Error('services are no mapping');
  for (const service of Object.values(services))
    if (!isObject(service) || !('image' in service || 'build' in service))
      throw new Error('a service without image');
}

/** test/compositions has LiteLLM itself read them. */
function litellm({ model_list }: Record<string, unknown>): void {
  const model = { model_name: expect.any(String), litellm_params: { model: expect.any(String) } };
  expect(model_list).toMatchObject(Array(Object(model_list).length).fill(model));
}

/** HTTP messages: a start line, headers and, optionally, a JSON body. */
export function http({ code }: Snippet): void {
  const [head = '', body = ''] = code.trimEnd().split('\n\n');
  const [start = '', ...headers] = head.split('\n');
  const isMessage = /^(GET|POST|PUT|DELETE|OPTIONS) \/\S*( HTTP\/1\.1)?$|^HTTP\/1\.1 \d{3}/.test(start);
  for (const line of isMessage ? headers : [start, ...headers]) expect(line).toMatch(/^[\w-]+: \S/);
  if (body !== '') JSON.parse(body);
}
