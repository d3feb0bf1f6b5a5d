// Packages the chart for publication, with values that point to the released image and to the page of the alerts.
// Needs `helm` on the PATH, or its path in HOLDFAST_HELM. Prints the path of the package.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { parseDocument } from 'yaml';

const CHART = fileURLToPath(new URL('../helm/holdfast', import.meta.url));
const USAGE =
  'usage: node scripts/package-chart.mjs --registry HOST --image NAME --runbook-url URL [--destination DIRECTORY]';

const { values: options } = parseArgs({
  options: {
    registry: { type: 'string' },
    image: { type: 'string' },
    'runbook-url': { type: 'string' },
    destination: { type: 'string', default: '.' },
  },
});
const { registry, image, 'runbook-url': runbookUrl, destination } = options;
if (!registry || !image || !runbookUrl) {
  console.error(USAGE);
  process.exit(2);
}

const directory = mkdtempSync(join(tmpdir(), 'holdfast-chart-'));
try {
  const chart = join(directory, 'holdfast');
  cpSync(CHART, chart, { recursive: true });
  const file = join(chart, 'values.yaml');
  const values = parseDocument(readFileSync(file, 'utf8'));
  values.setIn(['image', 'registry'], registry);
  values.setIn(['image', 'repository'], image);
  values.setIn(['metrics', 'prometheusRule', 'runbookUrl'], runbookUrl);
  writeFileSync(file, values.toString({ lineWidth: 0 }));
  const helm = process.env.HOLDFAST_HELM ?? 'helm';
  const said = execFileSync(helm, ['package', chart, '--destination', destination], { encoding: 'utf8' });
  const [, path] = /saved it to: (.*)/.exec(said) ?? [];
  console.log(join(destination, basename(path)));
} finally {
  rmSync(directory, { recursive: true });
}
