import type { TestProject } from 'vitest/node';
import { llamaServerBinary } from './server-binary.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The path of the server; empty if it is missing, which skips the tests. */
    readonly llamaServer: string;
  }
}

/** Builds the server once, before all tests. */
export default async function setup(project: TestProject): Promise<void> {
  const binary = await llamaServerBinary();
  if ('missing' in binary) console.warn(`The tests against llama-server are skipped: ${binary.missing}.`);
  project.provide('llamaServer', 'missing' in binary ? '' : binary.path);
}
