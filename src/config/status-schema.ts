import type { Schema } from './schema-terms.ts';

export const STATUS_SCHEMA: Readonly<Record<string, Schema>> = {
  content: {
    type: 'boolean',
    description:
      'Shows the end of the answers: to everybody who can reach the admin port, which asks nobody who they are. Prompts and keys are never shown.',
    default: false,
  },
  hosts: {
    type: 'array',
    description:
      'Public names under which the status page may be asked for. Addresses, names without a dot, and those that end in `.localhost`, `.local`, `.internal` or `.svc` always may.',
    default: [],
    uniqueItems: true,
    items: { type: 'string', description: 'A name, without a port.', minLength: 1 },
  },
};
