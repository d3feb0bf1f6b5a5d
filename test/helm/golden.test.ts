import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { CHART, Chart, EXAMPLES, nameOf } from './chart.ts';
import type { Resource } from './resource.ts';

const GOLDEN = fileURLToPath(new URL('golden', import.meta.url));
const UPDATE = process.env.HOLDFAST_UPDATE_GOLDEN !== undefined;

const chart = Chart.use();

/** Rules and dashboard have their own tests; here they only have to be included unchanged. */
function withoutFiles(resource: Resource): object {
  const text = (file: string) => readFileSync(join(CHART, 'files', file), 'utf8');
  if (resource.kind === 'PrometheusRule') {
    expect(resource.spec).toEqual({ groups: parse(text('rules.yaml')).groups });
    return { ...resource, spec: 'files/rules.yaml' };
  }
  const dashboard = resource.data?.['holdfast.json'];
  if (dashboard === undefined) return resource;
  expect(JSON.parse(dashboard)).toEqual(JSON.parse(text('dashboard.json')));
  return { ...resource, data: { 'holdfast.json': 'files/dashboard.json' } };
}

function compare(name: string, resources: readonly Resource[]): void {
  const key = ({ kind, metadata }: Resource) => `${kind} ${metadata.name}`;
  const text = resources
    .toSorted((one, other) => key(one).localeCompare(key(other), 'en'))
    .map((resource) => stringify(withoutFiles(resource), { sortMapEntries: true, lineWidth: 0 }))
    .join('---\n');
  const file = join(GOLDEN, `${name}.yaml`);
  if (UPDATE) writeFileSync(file, text);
  // After an intended change, update the files with HOLDFAST_UPDATE_GOLDEN=1.
  expect(text).toBe(readFileSync(file, 'utf8'));
}

describe('what is rendered', () => {
  it.each(EXAMPLES)('of examples/%s is what it was', async (example) => {
    compare(nameOf(example), await chart.render(example));
  });

  it('of the chart of an application with the sidecar is what it was', async () => {
    compare('application-chart', await chart.renderApplication());
  });

  it('has nothing that was rendered of examples that are gone', () => {
    expect(globSync('*.yaml', { cwd: GOLDEN }).sort()).toEqual(['application-chart.yaml', ...EXAMPLES]);
  });
});
