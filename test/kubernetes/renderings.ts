import { execFile } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Manifest, manifests, NAMESPACE } from './manifests.ts';

const CHART = fileURLToPath(new URL('../../helm/holdfast', import.meta.url));
const VALUES = [join(CHART, 'examples'), fileURLToPath(new URL('values', import.meta.url))];
/** Helm's default for the cluster's version depends on how Helm was built. */
const KUBERNETES = '1.36.3';
/** The chart of an application that depends on this one. */
const APPLICATION = 'application-chart';

const run = promisify(execFile);

/** The documented examples, and values for everything that no example uses. */
export const RENDERINGS = [APPLICATION, ...VALUES.flatMap((cwd) => globSync('*.yaml', { cwd })).sort()];

/** The chart's templates that create manifests, for example `templates/service.yaml`. */
export const TEMPLATES = globSync('templates/*.yaml', { cwd: CHART })
  .filter((template) => /^kind:/m.test(readFileSync(join(CHART, template), 'utf8')))
  .sort();

/** The output of `helm template` for one of `RENDERINGS`. */
export async function rendered(helm: string, name: string): Promise<Manifest[]> {
  if (name === APPLICATION) return application(helm);
  const [values = name] = VALUES.map((directory) => join(directory, name)).filter((file) => existsSync(file));
  return template(helm, CHART, '--values', values);
}

/** Works in a copy because Helm puts the dependency next to the templates. */
async function application(helm: string): Promise<Manifest[]> {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-chart-'));
  try {
    cpSync(CHART, directory, { recursive: true });
    const chart = join(directory, 'examples', APPLICATION);
    await run(helm, ['dependency', 'build', chart]);
    return await template(helm, chart);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

async function template(helm: string, chart: string, ...options: string[]): Promise<Manifest[]> {
  const place = ['--namespace', NAMESPACE, '--kube-version', KUBERNETES];
  const words = ['template', 'test', chart, ...place, ...options];
  const { stdout } = await run(helm, words, { maxBuffer: 1 << 26 });
  return manifests(stdout);
}
