import { DIALECT_NAMES, type DialectName } from '../../../../src/config/dialect-names.ts';
import type { Fixture } from './fixtures/fixture.ts';

/** One per dialect, in the file of the same name. */
export const FIXTURES = Object.fromEntries(
  await Promise.all(
    DIALECT_NAMES.map(async (name) => {
      const file = (await import(`./fixtures/${name}.ts`)) as Readonly<Record<string, Fixture>>;
      return [name, file[name]] as const;
    }),
  ),
) as Readonly<Record<DialectName, Fixture>>;
