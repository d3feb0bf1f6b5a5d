import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

it('holdfast.schema.json and docs/configuration.md are what the schema says', () => {
  const script = fileURLToPath(new URL('../../scripts/generate-reference.mjs', import.meta.url));
  expect(execFileSync(process.execPath, [script, '--check'], { encoding: 'utf8' })).toBe('');
});
