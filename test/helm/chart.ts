import { execFile } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { BUILD_LIMIT_MS, helmBinary } from '../kubernetes/binaries.ts';
import type { Resource } from './resource.ts';

export const CHART = fileURLToPath(new URL('../../helm/holdfast', import.meta.url));
/** The names of the example values files. */
export const EXAMPLES = globSync('*.yaml', { cwd: join(CHART, 'examples') }).sort();
/** The chart of an application that depends on this one. */
export const APPLICATION_CHART = 'examples/application-chart';

const PACKAGE = fileURLToPath(new URL('../../scripts/package-chart.mjs', import.meta.url));

/** Helm's default for the cluster's version depends on how Helm was built. */
export const KUBERNETES = '1.34.0';

const run = promisify(execFile);

export type Values = Readonly<Record<string, unknown>>;
type Answer = { readonly stdout: string; readonly stderr: string; readonly status: number };

/** The minimum that the chart requires. */
export const MINIMAL: Values = {
  config: { upstreams: { openai: { base_url: 'https://api.openai.com/v1' } } },
};

/** A reference to a variable in the configuration; `name` is `NAME` or `NAME:-default`. */
export const variable = (name: string): string => `$\{${name}}`;

/** The chart, rendered by the real `helm`. Skips the tests of the file if there is none. */
export class Chart {
  #helm = '';
  readonly #directory = mkdtempSync(join(tmpdir(), 'holdfast-chart-'));

  static use(): Chart {
    const chart = new Chart();
    let missing: string | undefined;
    beforeAll(async () => {
      const helm = await helmBinary();
      if ('missing' in helm) missing = helm.missing;
      else chart.#helm = helm.path;
    }, BUILD_LIMIT_MS);
    beforeEach(({ skip }) => skip(missing !== undefined, missing));
    afterAll(() => rmSync(chart.#directory, { recursive: true }));
    return chart;
  }

  /** All resources rendered from an example, or from values. Rejects with Helm's message if Helm refuses them. */
  async render(values: string | Values): Promise<Resource[]> {
    return resources(await this.#template(CHART, values));
  }

  /** The resources of `helm test`, which the other renderings leave out. */
  async renderTest(values: Values = {}): Promise<Resource[]> {
    const all = resources(await this.#template(CHART, merged(MINIMAL, values), []));
    return all.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] === 'test');
  }

  /** Like `render`, with the required values added. */
  async renderWith(values: Values): Promise<Resource[]> {
    return this.render(merged(MINIMAL, values));
  }

  /** The application's chart, with this one where `helm dependency build` puts it. */
  async renderApplication(values: Values = {}): Promise<Resource[]> {
    const directory = mkdtempSync(join(this.#directory, 'charts-'));
    cpSync(CHART, directory, { recursive: true });
    const application = join(directory, APPLICATION_CHART);
    const { status, stderr } = await this.#run(['dependency', 'build', application]);
    if (status !== 0) throw new Error(stderr);
    return resources(await this.#template(application, values));
  }

  /**
   * Renders the package that scripts/package-chart.mjs builds with these options. Rejects with the script's message.
   */
  async renderPackage(options: Readonly<Record<string, string>>, values: Values): Promise<Resource[]> {
    const destination = mkdtempSync(join(this.#directory, 'package-'));
    const words = Object.entries({ ...options, destination }).flatMap(([name, value]) => [
      `--${name}`,
      value,
    ]);
    const env = { ...process.env, HOLDFAST_HELM: this.#helm };
    const { stdout } = await run(process.execPath, [PACKAGE, ...words], { env });
    return resources(await this.#template(stdout.trim(), values));
  }

  /** Helm's message if it refuses the values, otherwise ''. */
  async refusal(values: Values): Promise<string> {
    const { stderr, status } = await this.#template(CHART, merged(MINIMAL, values));
    return status === 0 ? '' : stderr;
  }

  async lint(values?: string): Promise<Answer> {
    const words = values === undefined ? [] : ['--values', join(CHART, 'examples', values)];
    return this.#run(['lint', '--strict', CHART, '--kube-version', KUBERNETES, ...words]);
  }

  async #template(chart: string, values: string | Values, options = ['--skip-tests']): Promise<Answer> {
    const file = typeof values === 'string' ? join(CHART, 'examples', values) : this.#written(values);
    const place = ['--namespace', 'llm', '--kube-version', KUBERNETES];
    return this.#run(['template', 'release', chart, '--values', file, ...place, ...options]);
  }

  #written(values: Values): string {
    const file = join(mkdtempSync(join(this.#directory, 'values-')), 'values.json');
    writeFileSync(file, JSON.stringify(values));
    return file;
  }

  async #run(words: readonly string[]): Promise<Answer> {
    try {
      return { ...(await run(this.#helm, words, { maxBuffer: 1 << 26 })), status: 0 };
    } catch (error) {
      const {
        stdout = '',
        stderr = '',
        code,
      } = error as { stdout?: string; stderr?: string; code?: unknown };
      if (typeof code !== 'number') throw error;
      return { stdout, stderr, status: code };
    }
  }
}

/** `example.yaml` → `example` */
export const nameOf = (example: string): string => basename(example, '.yaml');

function resources({ stdout, stderr, status }: Answer): Resource[] {
  if (status !== 0) throw new Error(stderr);
  return parseAllDocuments(stdout).flatMap((document) => {
    if (document.errors.length > 0) throw new Error(`${document.errors[0]}\n${stdout}`);
    const resource = document.toJS();
    return resource === null ? [] : [resource];
  });
}

/** Merges values as Helm merges values files. */
function merged(base: Values, over: Values): Values {
  const both: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const below = both[key];
    both[key] = isMap(below) && isMap(value) ? merged(below, value) : value;
  }
  return both;
}

const isMap = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
