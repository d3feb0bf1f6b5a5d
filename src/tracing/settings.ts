import type { TracingConfiguration } from '../config/configuration.ts';

/** Where to send traces, and which ones. */
export interface TracingSettings {
  /** The complete URL, including the path. */
  readonly url: string;
  /** Override headers from `OTEL_EXPORTER_OTLP_HEADERS`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly sampling: Sampling;
  /** Overrides the service name from the environment. */
  readonly service_name?: string;
}

export interface Sampling {
  /** Whether a client's `traceparent` decides, if present. */
  readonly byParent: boolean;
  /** Share of all other runs, from 0 to 1. */
  readonly ratio: number;
}

const TRACES_PATH = 'v1/traces';
const ALL: Sampling = { byParent: true, ratio: 1 };

/**
 * Configured values override the standard `OTEL_*` variables, which override defaults. `settings` is undefined if no
 * endpoint is set, or if `OTEL_SDK_DISABLED` or `OTEL_TRACES_EXPORTER=none` disables tracing. A variable may be meant
 * for another process, so an invalid one causes a warning and never prevents the start.
 */
export function tracingSettings(
  { endpoint, headers = {}, sample_ratio, service_name }: TracingConfiguration,
  environment: NodeJS.ProcessEnv,
): { readonly settings?: TracingSettings; readonly warnings: readonly string[] } {
  const warnings: string[] = [];
  const isOff = environment.OTEL_SDK_DISABLED?.toLowerCase() === 'true';
  if (isOff || environment.OTEL_TRACES_EXPORTER === 'none') return { warnings };

  const url = endpoint === undefined ? urlOf(environment, warnings) : withTracesPath(endpoint);
  if (url === undefined) return { warnings };
  const sampling =
    sample_ratio === undefined ? samplingOf(environment, warnings) : { byParent: true, ratio: sample_ratio };
  warnOfFormat(environment, warnings);
  return {
    settings: { url, headers, sampling, ...(service_name !== undefined && { service_name }) },
    warnings,
  };
}

/** Also accepts a base URL that already has the path, as some vendors document it. */
function withTracesPath(base: string): string {
  const url = new URL(base);
  if (!url.pathname.endsWith(`/${TRACES_PATH}`))
    url.pathname = `${url.pathname.replace(/\/$/, '')}/${TRACES_PATH}`;
  return url.href;
}

function urlOf(environment: NodeJS.ProcessEnv, warnings: string[]): string | undefined {
  for (const name of ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT']) {
    const text = environment[name];
    if (!text) continue;
    // The value isn't shown, because it may contain credentials.
    if (!/^https?:$/.test(URL.parse(text)?.protocol ?? ''))
      warnings.push(`${name}: not an http: or https: URL, ignored.`);
    else if (name.includes('TRACES')) return text;
    else return withTracesPath(text);
  }
  return undefined;
}

function samplingOf(environment: NodeJS.ProcessEnv, warnings: string[]): Sampling {
  const name = environment.OTEL_TRACES_SAMPLER || 'parentbased_always_on';
  const byParent = name.startsWith('parentbased_');
  switch (name.replace('parentbased_', '')) {
    case 'always_on':
      return { byParent, ratio: 1 };
    case 'always_off':
      return { byParent, ratio: 0 };
    case 'traceidratio':
      return { byParent, ratio: ratioOf(environment, warnings) };
    default:
      warnings.push(`OTEL_TRACES_SAMPLER: ${name} is not known here, all runs are traced.`);
      return ALL;
  }
}

function ratioOf({ OTEL_TRACES_SAMPLER_ARG: text }: NodeJS.ProcessEnv, warnings: string[]): number {
  const ratio = Number(text || 1);
  if (ratio >= 0 && ratio <= 1) return ratio;
  warnings.push('OTEL_TRACES_SAMPLER_ARG: not a number from 0 to 1, all runs are traced.');
  return 1;
}

/** Receivers distinguish JSON from Protobuf by content type on the same port, but gRPC needs another one. */
function warnOfFormat(environment: NodeJS.ProcessEnv, warnings: string[]): void {
  const [name, value] = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL']
    .map((each) => [each, environment[each]] as const)
    .find(([, format]) => format) ?? ['', ''];
  if (value === 'grpc')
    warnings.push(`${name}: traces are sent by HTTP, not by gRPC: the endpoint must be one for HTTP.`);
  const exporter = environment.OTEL_TRACES_EXPORTER || 'otlp';
  if (exporter !== 'otlp')
    warnings.push(`OTEL_TRACES_EXPORTER: ${exporter} is not known here, traces are sent by OTLP.`);
}
