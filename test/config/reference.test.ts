import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

it('holdfast.schema.json, the schema of the chart, docs/configuration.md, docs/providers.md and the names of the dialects are up to date', () => {
  const script = fileURLToPath(new URL('../../scripts/generate-reference.mjs', import.meta.url));
  expect(execFileSync(process.execPath, [script, '--check'], { encoding: 'utf8' })).toBe('');
});
