import type { CachedProgram } from '../../test/cached-program.ts';

/** A running gateway, and how the suite reaches it. */
export interface StartedGateway {
  /** Arguments for the suite's command. */
  readonly words: readonly string[];
  stop(): Promise<void>;
}

export interface GatewayUnderTest {
  readonly name: string;
  readonly version: string;
  /** How the page describes its configuration. */
  readonly configuration: string;
  /** `directory` is for its files and log. Rejects if it can't be installed or doesn't start. */
  start(provider_port: number, directory: string): Promise<StartedGateway>;
}

/** The path of an installed gateway. */
export function pathOf(installed: CachedProgram): string {
  if ('missing' in installed) throw new Error(installed.missing);
  return installed.path;
}
