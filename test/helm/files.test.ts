import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import manifest from '../../package.json' with { type: 'json' };
import { CHART, EXAMPLES } from './chart.ts';

describe('the files of the chart', () => {
  it('say the version of the application', () => {
    expect(parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'))).toMatchObject({
      appVersion: manifest.version,
    });
  });

  it('have a README that is up to date', () => {
    const script = fileURLToPath(new URL('../../scripts/chart-readme.mjs', import.meta.url));
    expect(execFileSync(process.execPath, [script, '--check'], { encoding: 'utf8' })).toBe('');
  });

  it('name no registry: the installation says where the image is', () => {
    const images = ['values.yaml', ...EXAMPLES.map((example) => join('examples', example))].flatMap((file) =>
      [
        ...readFileSync(join(CHART, file), 'utf8').matchAll(
          /^\s*(?:- )?(?:repository|image): ([^{\s]\S*)$/gm,
        ),
      ].map(([, image = '']) => image),
    );
    expect(images).toContain('holdfast');
    // The part before the first slash is a host if it contains a dot or a port.
    expect(images.filter((image) => /^[^/]*[.:][^/]*\//.test(image))).toEqual([]);
  });

  it('run the image as it is: its entry point, its user, and its place for data', () => {
    const image = readFileSync(fileURLToPath(new URL('../../Dockerfile', import.meta.url)), 'utf8');
    const values = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8'));
    expect(image).toMatch(/^ENTRYPOINT \[.*"\/app\/dist\/cli\.js"\]$/m);
    expect(image).toMatch(/^USER (\d+):\1$/m);
    expect(image).toContain(
      `\nUSER ${values.securityContext.runAsUser}:${values.securityContext.runAsGroup}\n`,
    );
    expect(image).toMatch(/^VOLUME \["\/data"\]$/m);
    expect(image).toContain(`NODE_OPTIONS=${values.nodeOptions}\n`);
  });

  it('are templates without values that nothing describes', () => {
    const known = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8'));
    const used = globSync('templates/*', { cwd: CHART }).flatMap((file) =>
      [...readFileSync(join(CHART, file), 'utf8').matchAll(/\.Values((?:\.[A-Za-z]+)+)/g)].map(
        ([, path = '']) => path.slice(1).split('.'),
      ),
    );
    const unknown = used.filter(
      (path) => path.reduce((value: unknown, key) => lookUp(value, key), known) === undefined,
    );
    expect(unknown.map((path) => path.join('.'))).toEqual([]);
  });
});

function lookUp(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined;
}
