import { describe, expect, test } from 'vitest';
import type { TracingConfiguration } from '../../src/config/configuration.ts';
import { tracingSettings } from '../../src/tracing/settings.ts';

const BASE = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
const of = (environment: NodeJS.ProcessEnv, configuration: TracingConfiguration = {}) =>
  tracingSettings(configuration, environment);

describe('whether and where', () => {
  test('nothing is traced unless it is asked for', () => {
    expect(of({})).toEqual({ warnings: [] });
    expect(
      of({ OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_SERVICE_NAME: 'x', OTEL_TRACES_SAMPLER: 'always_on' }),
    ).toEqual({
      warnings: [],
    });
    expect(of({}, { sample_ratio: 1, service_name: 'x' }).settings).toBeUndefined();
  });

  test.each([
    ['http://collector:4318', 'http://collector:4318/v1/traces'],
    ['http://collector:4318/', 'http://collector:4318/v1/traces'],
    ['https://vendor.example/otlp', 'https://vendor.example/otlp/v1/traces'],
    ['https://vendor.example/otlp/v1/traces', 'https://vendor.example/otlp/v1/traces'],
    ['https://vendor.example/otlp?tenant=1', 'https://vendor.example/otlp/v1/traces?tenant=1'],
  ])('%s is asked for as %s', (endpoint, url) => {
    expect(of({}, { endpoint }).settings?.url).toBe(url);
    expect(of({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }).settings?.url).toBe(url);
  });

  test('what is configured wins over the variable for traces, which wins over the one for everything', () => {
    const traces = { ...BASE, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://traces:4318/as/it/is' };
    expect(of(traces).settings?.url).toBe('http://traces:4318/as/it/is');
    expect(of(traces, { endpoint: 'http://configured' }).settings?.url).toBe('http://configured/v1/traces');
  });

  test('a variable that is no address is logged, without its value, and starts nothing', () => {
    const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317/secret' };
    expect(of(environment)).toEqual({
      warnings: ['OTEL_EXPORTER_OTLP_ENDPOINT: not an http: or https: URL, ignored.'],
    });
    expect(of({ ...BASE, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'nonsense' })).toMatchObject({
      settings: { url: 'http://collector:4318/v1/traces' },
      warnings: ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: not an http: or https: URL, ignored.'],
    });
  });

  test.each([{ OTEL_SDK_DISABLED: 'true' }, { OTEL_SDK_DISABLED: 'TRUE' }, { OTEL_TRACES_EXPORTER: 'none' }])(
    '%o turns traces off, wherever they were turned on',
    (off) => {
      expect(of({ ...BASE, ...off })).toEqual({ warnings: [] });
      expect(of(off, { endpoint: 'http://configured' })).toEqual({ warnings: [] });
    },
  );

  test('a protocol that is not supported is logged', () => {
    const warningsOf = (more: NodeJS.ProcessEnv) => of({ ...BASE, ...more }).warnings;
    expect(
      warningsOf({ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf', OTEL_TRACES_EXPORTER: 'otlp' }),
    ).toEqual([]);
    expect(warningsOf({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })).toEqual([
      expect.stringMatching(/^OTEL_EXPORTER_OTLP_PROTOCOL: .*not by gRPC/),
    ]);
    const forTraces = {
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
    };
    expect(warningsOf(forTraces)).toEqual([]);
    expect(warningsOf({ OTEL_TRACES_EXPORTER: 'zipkin' })).toEqual([
      expect.stringMatching(/^OTEL_TRACES_EXPORTER: zipkin/),
    ]);
  });
});

describe('which', () => {
  const samplingOf = (environment: NodeJS.ProcessEnv, configuration: TracingConfiguration = {}) =>
    of({ ...BASE, ...environment }, configuration).settings?.sampling;

  test.each([
    [{}, { byParent: true, ratio: 1 }],
    [{ OTEL_TRACES_SAMPLER: 'always_on' }, { byParent: false, ratio: 1 }],
    [{ OTEL_TRACES_SAMPLER: 'always_off' }, { byParent: false, ratio: 0 }],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_always_off' }, { byParent: true, ratio: 0 }],
    [
      { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.25' },
      { byParent: false, ratio: 0.25 },
    ],
    [
      { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' },
      { byParent: true, ratio: 0 },
    ],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio' }, { byParent: true, ratio: 1 }],
  ])('%o', (environment, sampling) => {
    expect(samplingOf(environment)).toEqual(sampling);
    expect(samplingOf(environment, { sample_ratio: 0.5 })).toEqual({ byParent: true, ratio: 0.5 });
  });

  test.each([
    { OTEL_TRACES_SAMPLER: 'jaeger_remote' },
    { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '110 %' },
    { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' },
  ])('all, with a warning, where %o says nothing of use', (environment) => {
    const { settings, warnings } = of({ ...BASE, ...environment });
    expect(settings?.sampling).toEqual({ byParent: true, ratio: 1 });
    expect(warnings).toEqual([expect.stringMatching(/^OTEL_TRACES_SAMPLER(_ARG)?: .*all runs are traced/)]);
  });
});
