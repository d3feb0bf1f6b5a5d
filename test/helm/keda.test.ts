import { expect, it } from 'vitest';
import { Chart } from './chart.ts';
import { kindsOf, only, specOf } from './resource.ts';

const chart = Chart.use();

const scaledBy = (keda: object, autoscaling: object = {}) =>
  chart.renderWith({
    secret: { existingSecret: 'holdfast' },
    store: { type: 'redis', redis: { existingSecret: 'holdfast' } },
    autoscaling: {
      enabled: true,
      ...autoscaling,
      keda: { enabled: true, serverAddress: 'http://prometheus.monitoring:9090', ...keda },
    },
  });

interface ScaledObject {
  readonly triggers: readonly { readonly type: string; readonly metadata: { readonly query: string } }[];
}

it('a ScaledObject takes the place of the HorizontalPodAutoscaler, and its values', async () => {
  const resources = await scaledBy({}, { minReplicas: 3, maxReplicas: 20, targetActiveRuns: 300 });
  expect(kindsOf(resources)).not.toContain('HorizontalPodAutoscaler');
  expect(only(resources, 'Deployment').spec).not.toHaveProperty('replicas');
  expect(only(resources, 'ScaledObject').spec).toMatchObject({
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'release-holdfast' },
    minReplicaCount: 3,
    maxReplicaCount: 20,
    triggers: [
      {
        type: 'prometheus',
        metricType: 'AverageValue',
        metadata: {
          serverAddress: 'http://prometheus.monitoring:9090',
          threshold: '300',
          ignoreNullValues: 'false',
        },
      },
      { type: 'cpu', metricType: 'Utilization', metadata: { value: '75' } },
    ],
    advanced: {
      horizontalPodAutoscalerConfig: { behavior: { scaleDown: { stabilizationWindowSeconds: 600 } } },
    },
  });
});

it('the query counts the pods of the release, and of no other one', async () => {
  const { triggers } = specOf<ScaledObject>(only(await scaledBy({}), 'ScaledObject'));
  const [, pods = ''] =
    /^sum\(holdfast_runs_active\{namespace="llm",pod=~"(.*)"\}\)$/.exec(triggers[0]?.metadata.query ?? '') ??
    [];
  // Prometheus anchors regular expressions.
  const matched = new RegExp(`^(?:${pods})$`);
  expect('release-holdfast-6d4cf56db6-x2x7k').toMatch(matched);
  expect('release-holdfast-other-6d4cf56db6-x2x7k').not.toMatch(matched);
  expect('another-release-holdfast-6d4cf56db6-x2x7k').not.toMatch(matched);
});

it('a ScaledObject has the query, the credentials and the fallback that are given', async () => {
  const given = {
    query: 'sum(holdfast_runs_active{job="holdfast"})',
    pollingInterval: 30,
    fallback: { failureThreshold: 3, replicas: 6 },
    authenticationRef: { name: 'prometheus', kind: 'ClusterTriggerAuthentication' },
    annotations: { 'autoscaling.keda.sh/paused': 'true' },
  };
  const scaled = only(await scaledBy(given, { targetCPUUtilizationPercentage: 0 }), 'ScaledObject');
  expect(scaled.metadata.annotations).toEqual(given.annotations);
  expect(scaled.spec).toMatchObject({
    pollingInterval: 30,
    fallback: given.fallback,
    triggers: [
      { type: 'prometheus', authenticationRef: given.authenticationRef, metadata: { query: given.query } },
    ],
  });
  expect(specOf<ScaledObject>(scaled).triggers).toHaveLength(1);
});
