import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { CONFIGURATION_SCHEMA } from '../../src/config/schema.ts';

test('the schema of the configuration is a JSON schema: no replica checks that when it starts', () => {
  const ajv = new Ajv2020();
  expect({ isValid: ajv.validateSchema(CONFIGURATION_SCHEMA), errors: ajv.errors ?? [] }).toEqual({
    isValid: true,
    errors: [],
  });
});
