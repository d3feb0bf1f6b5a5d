import { describe, expect, it } from 'vitest';
import { Chart, type Values, variable } from './chart.ts';

const chart = Chart.use();

const WEBHOOK_SECRET = `whsec_${Buffer.alloc(24).toString('base64')}`;
const SECRET: Values = { existingSecret: 'holdfast' };
const REDIS: Values = { secret: SECRET, store: { type: 'redis', redis: { existingSecret: 'holdfast' } } };
const INGRESS: Values = { enabled: true, hosts: [{ host: 'llm.example.com' }] };
const ADMIN_PATH = [{ path: '/metrics', port: 'admin' }];
const OPENAI: Values = { base_url: 'https://api.openai.com/v1' };
const AUTOSCALING: Values = { ...REDIS, autoscaling: { enabled: true } };
const KEDA: Values = {
  ...REDIS,
  autoscaling: { enabled: true, keda: { enabled: true, serverAddress: 'http://prometheus:9090' } },
};

/** Contradictory values → the error message, and corrected values that Helm accepts. */
const CONTRADICTIONS: Record<string, [values: Values, message: string, remedied: Values]> = {
  'several upstreams of which none is the first': [
    { config: { upstreams: { backup: OPENAI } } },
    'defaultUpstream: there are several upstreams (backup, openai), and Helm does not keep their order; name the one',
    { config: { upstreams: { backup: OPENAI } }, defaultUpstream: 'openai' },
  ],
  'a first upstream that there is not': [
    { defaultUpstream: 'opanai' },
    'defaultUpstream: "opanai" is not one of config.upstreams (openai)',
    { defaultUpstream: 'openai' },
  ],
  'addresses in the configuration': [
    { config: { listen: { port: 80 } } },
    'config.listen: is written by the chart; set ports.api, ports.admin and bindAddress',
    { ports: { api: 8000 } },
  ],
  'a secret in the configuration': [
    { config: { secret: 'correct horse battery staple' } },
    'config.secret: would be readable in a ConfigMap; set secret.existingSecret',
    { secret: SECRET },
  ],
  'a store in the configuration': [
    { config: { checkpoint: { store: 'memory' } } },
    'config.checkpoint.store: is written by the chart; set store.type',
    { store: { type: 'memory' } },
  ],
  'the key of a provider in the configuration': [
    { config: { upstreams: { openai: { api_key: 'sk-1' } } } },
    `config.upstreams.openai.api_key: would be readable in a ConfigMap; write ${variable('NAME')} there`,
    { config: { upstreams: { openai: { api_key: variable('OPENAI_API_KEY') } } }, credentials: SECRET },
  ],
  'the token of a client in the configuration': [
    { config: { clients: [{ name: 'chat-ui', token: '0123456789abcdef' }] } },
    `config.clients: the token of chat-ui would be readable in a ConfigMap; write ${variable('NAME')} there`,
    { config: { clients: [{ name: 'chat-ui', token: variable('CHAT_UI_TOKEN') }] }, credentials: SECRET },
  ],
  'the secret of a webhook in the configuration': [
    { config: { webhooks: [{ url: 'https://hooks.example.com', secret: WEBHOOK_SECRET }] } },
    `config.webhooks: the secret of webhooks[0] would be readable in a ConfigMap; write ${variable('NAME')} there`,
    {
      config: {
        webhooks: [
          { url: 'https://hooks.example.com/1', secret: variable('WEBHOOK_SECRET') },
          { url: 'https://hooks.example.com/2', secret_file: '/run/secrets/webhook' },
        ],
      },
      credentials: SECRET,
    },
  ],
  'a sealing key in the configuration': [
    { config: { checkpoint: { sealing_keys: ['0123456789abcdef0123456789abcdef'] } } },
    `config.checkpoint.sealing_keys: would be readable in a ConfigMap; write ${variable('NAME')} there`,
    { config: { checkpoint: { sealing_keys: [variable('SEALING_KEY')] } }, credentials: SECRET },
  ],
  'a credential of the collector of traces in the configuration': [
    { config: { tracing: { headers: { authorization: 'Bearer t' } } } },
    `config.tracing.headers.authorization: would be readable in a ConfigMap; write ${variable('NAME')} there`,
    {
      config: { tracing: { headers: { authorization: `Bearer ${variable('TOKEN')}`, 'x-team': 'agents' } } },
      credentials: SECRET,
    },
  ],
  'a variable that wins over what the chart has checked': [
    { extraEnv: [{ name: 'HOLDFAST_LIMITS_DRAIN_MS', value: '600000' }] },
    'extraEnv: HOLDFAST_LIMITS_DRAIN_MS would win over what the chart writes and checks; set config.limits.drain_ms',
    { extraEnv: [{ name: 'HOLDFAST_LOG_LEVEL', value: 'debug' }] },
  ],
  'a variable that hides the admin port from the kubelet': [
    { extraEnv: [{ name: 'HOLDFAST_LISTEN_ADMIN_HOST', value: '127.0.0.1' }] },
    'extraEnv: HOLDFAST_LISTEN_ADMIN_HOST would win over what the chart writes and checks; set bindAddress',
    {},
  ],
  'a label by which pods are found': [
    { podLabels: { 'app.kubernetes.io/name': 'agent' } },
    'podLabels: app.kubernetes.io/name is written by the chart; remove it',
    { podLabels: { team: 'agents' }, commonLabels: { team: 'all' } },
  ],
  'one port for API and admin': [
    { ports: { api: 9090 } },
    'ports.admin: is 9090, as ports.api is; take another one',
    { ports: { api: 9090, admin: 9091 } },
  ],

  'a key of a provider that nothing sets': [
    { config: { upstreams: { openai: { api_key: variable('OPENAI_API_KEY') } } } },
    `credentials: config refers to ${variable('OPENAI_API_KEY')}, and nothing sets it; put it into a Secret under the key OPENAI_API_KEY`,
    {
      config: { upstreams: { openai: { api_key: variable('OPENAI_API_KEY') } } },
      extraEnv: [{ name: 'OPENAI_API_KEY', value: 'sk-1' }],
    },
  ],
  'a key that nothing refers to': [
    { credentials: { values: { OPENAI_API_KEY: 'sk-1' } } },
    `credentials.values.OPENAI_API_KEY: nothing in config refers to ${variable('OPENAI_API_KEY')}`,
    {
      config: { upstreams: { openai: { api_key: variable('OPENAI_API_KEY') } } },
      credentials: { values: { OPENAI_API_KEY: 'sk-1' } },
    },
  ],
  'keys both in a Secret and in plain text': [
    {
      config: { upstreams: { openai: { api_key: variable('OPENAI_API_KEY') } } },
      credentials: { existingSecret: 'holdfast', values: { OPENAI_API_KEY: 'sk-1' } },
    },
    'credentials: has both existingSecret and values; keep one of them',
    {},
  ],
  'a secret both in a Secret and in plain text': [
    { secret: { existingSecret: 'holdfast', value: '0123456789abcdef' } },
    'secret: has both existingSecret and value; keep one of them',
    { secret: { value: '0123456789abcdef' } },
  ],
  'two secrets': [
    { secret: SECRET, extraEnv: [{ name: 'HOLDFAST_SECRET', value: '0123456789abcdef' }] },
    'secret: is set, and so is HOLDFAST_SECRET in extraEnv; keep one of them',
    { extraEnv: [{ name: 'HOLDFAST_SECRET', value: '0123456789abcdef' }] },
  ],
  'a shared store without a secret': [
    { ...REDIS, secret: {} },
    'secret: replicas that share a store need the same one, and store.type is redis; set secret.existingSecret',
    REDIS,
  ],
  'Redis without a URL': [
    { secret: SECRET, store: { type: 'redis' } },
    'store.redis: store.type is redis, and nothing says where it is; set store.redis.existingSecret',
    REDIS,
  ],
  'Redis both in a Secret and in plain text': [
    { secret: SECRET, store: { type: 'redis', redis: { existingSecret: 'holdfast', url: 'redis://redis' } } },
    'store.redis: has both existingSecret and url; keep one of them',
    { secret: SECRET, store: { type: 'redis', redis: { url: 'redis://redis' } } },
  ],
  'a Redis that is not used': [
    { store: { redis: { existingSecret: 'holdfast' } } },
    'store.redis: is not used, because store.type is file; set store.type=redis',
    REDIS,
  ],
  'Valkey without a password': [
    { secret: SECRET, store: { type: 'valkey' } },
    'valkey.auth: store.type is valkey, and it has no password; set valkey.auth.existingSecret',
    { secret: SECRET, store: { type: 'valkey' }, valkey: { auth: SECRET } },
  ],
  'Valkey with a password both in a Secret and in plain text': [
    {
      secret: SECRET,
      store: { type: 'valkey' },
      valkey: { auth: { existingSecret: 'holdfast', password: 'p' } },
    },
    'valkey.auth: has both existingSecret and password; keep one of them',
    { secret: SECRET, store: { type: 'valkey' }, valkey: { auth: { password: 'p' } } },
  ],
  'a Valkey that is not used': [
    { valkey: { auth: SECRET } },
    'valkey.auth: is not used, because store.type is file; set store.type=valkey',
    {},
  ],

  'replicas over a file store': [
    { replicaCount: 2 },
    'replicaCount: is 2, and store.type file is for one replica; set store.type to redis or valkey',
    { ...REDIS, replicaCount: 2 },
  ],
  'replicas over a memory store': [
    { replicaCount: 2, store: { type: 'memory' } },
    'replicaCount: is 2, and store.type memory is for one replica; set store.type to redis or valkey',
    { store: { type: 'memory' } },
  ],
  'autoscaling over a file store': [
    { autoscaling: { enabled: true } },
    'autoscaling.enabled: store.type file is for one replica; set store.type to redis or valkey',
    AUTOSCALING,
  ],
  'a least that is above the most': [
    { ...REDIS, autoscaling: { enabled: true, minReplicas: 5, maxReplicas: 4 } },
    'autoscaling.minReplicas: 5 is more than autoscaling.maxReplicas, 4',
    { ...REDIS, autoscaling: { enabled: true, minReplicas: 4, maxReplicas: 4 } },
  ],
  'autoscaling by nothing': [
    { ...REDIS, autoscaling: { enabled: true, targetActiveRuns: 0, targetCPUUtilizationPercentage: 0 } },
    'autoscaling: targetActiveRuns and targetCPUUtilizationPercentage are both 0; set one of them',
    { ...REDIS, autoscaling: { enabled: true, targetActiveRuns: 0 } },
  ],
  'a share of a CPU that is not requested': [
    { ...AUTOSCALING, resources: { requests: { cpu: null } } },
    'autoscaling.targetCPUUtilizationPercentage: is a share of resources.requests.cpu, which is not set',
    { ...AUTOSCALING, resources: { requests: { cpu: '2' } } },
  ],
  'two budgets': [
    { ...REDIS, replicaCount: 3, podDisruptionBudget: { minAvailable: 2, maxUnavailable: 1 } },
    'podDisruptionBudget: has both minAvailable and maxUnavailable; keep one of them',
    { ...REDIS, replicaCount: 3, podDisruptionBudget: { minAvailable: 2 } },
  ],
  'a budget of nothing': [
    { podDisruptionBudget: { maxUnavailable: 0 } },
    'podDisruptionBudget.maxUnavailable: 0 lets nothing be evicted, so that no node can be drained; set 1',
    { podDisruptionBudget: { maxUnavailable: 1 } },
  ],
  'a budget of no part': [
    { podDisruptionBudget: { maxUnavailable: '0%' } },
    'podDisruptionBudget.maxUnavailable: 0% lets nothing be evicted',
    { podDisruptionBudget: { maxUnavailable: '25%' } },
  ],
  'a budget that keeps the only replica': [
    { podDisruptionBudget: { minAvailable: 1 } },
    'podDisruptionBudget.minAvailable: 1 of 1 replicas lets nothing be evicted, so that no node can be drained',
    { podDisruptionBudget: { minAvailable: 0 } },
  ],
  'a budget that keeps all after rounding': [
    { ...REDIS, replicaCount: 3, podDisruptionBudget: { minAvailable: '67%' } },
    'podDisruptionBudget.minAvailable: 67% of 3 replicas lets nothing be evicted',
    { ...REDIS, replicaCount: 3, podDisruptionBudget: { minAvailable: '66%' } },
  ],
  'a budget that keeps the fewest there may be': [
    { ...AUTOSCALING, podDisruptionBudget: { minAvailable: 2 } },
    'podDisruptionBudget.minAvailable: 2 of 2 replicas lets nothing be evicted',
    { ...AUTOSCALING, podDisruptionBudget: { minAvailable: 1 } },
  ],
  'a volume that is not used': [
    { store: { type: 'memory', file: { persistence: { enabled: true } } } },
    'store.file.persistence: is not used, because store.type is memory',
    { store: { type: 'file', file: { persistence: { enabled: true } } } },
  ],
  'a claim that is not used': [
    { store: { file: { persistence: { existingClaim: 'journals' } } } },
    'store.file.persistence.existingClaim: is not used; set store.file.persistence.enabled=true',
    { store: { file: { persistence: { enabled: true, existingClaim: 'journals' } } } },
  ],

  'a drain as long as what is left of the grace': [
    { config: { limits: { drain_ms: 40_000 } } },
    'config.limits.drain_ms: 40000 ms do not fit into the 40 s that terminationGracePeriodSeconds=45 leaves after preStop.sleepSeconds=5',
    { config: { limits: { drain_ms: 39_999 } } },
  ],
  'a grace that is all slept away': [
    { preStop: { sleepSeconds: 45 } },
    'config.limits.drain_ms: 25000 ms do not fit into the 0 s that terminationGracePeriodSeconds=45 leaves',
    { preStop: { sleepSeconds: 0 } },
  ],
  'a drain that only the environment knows': [
    {
      config: { limits: { drain_ms: variable('DRAIN_MS') } },
      extraEnv: [{ name: 'DRAIN_MS', value: '1000' }],
    },
    'config.limits.drain_ms: must be a number here, because the chart compares it with terminationGracePeriodSeconds',
    { config: { limits: { drain_ms: 1000 } } },
  ],
  'a probe at the number of the API port': [
    { probes: { liveness: { httpGet: { port: 8080 } } } },
    'probes.liveness.httpGet.port: 8080 is the API, which answers nothing about health; write admin',
    { probes: { liveness: { httpGet: { port: 9090 } } } },
  ],
  'a probe at the name of the API port': [
    { probes: { readiness: { httpGet: { port: 'api' } } } },
    'probes.readiness.httpGet.port: api is the API, which answers nothing about health; write admin',
    { probes: { readiness: { httpGet: { port: 'admin' } } } },
  ],
  'a probe at a port of another container': [
    { probes: { startup: { httpGet: { port: 80 } } } },
    'probes.startup.httpGet.port: 80 is not the admin port; write admin',
    { ports: { admin: 9091 }, probes: { startup: { httpGet: { port: 9091 } } } },
  ],
  'a probe of a page that is always there': [
    { probes: { liveness: { httpGet: { path: '/metrics' } } } },
    'probes.liveness.httpGet.path: /metrics says nothing about health; ask /livez or /readyz',
    { probes: { liveness: { httpGet: { path: '/readyz' } } } },
  ],
  'a probe that needs a shell': [
    { probes: { liveness: { httpGet: null, exec: { command: ['true'] } } } },
    'probes.liveness: has no httpGet; the image has no shell to run a command with',
    { probes: { liveness: { periodSeconds: 5 } } },
  ],
  'a probe that asks twice': [
    { probes: { liveness: { tcpSocket: { port: 8080 } } } },
    'probes.liveness.tcpSocket: a probe has one way of asking; remove it, and keep httpGet',
    {},
  ],

  'the admin port on a load balancer': [
    { service: { type: 'LoadBalancer', exposeAdmin: true } },
    'service.exposeAdmin: a Service of type LoadBalancer would show the admin port to the outside; it has no authentication; set admin.allowPublic=true',
    { service: { type: 'LoadBalancer', exposeAdmin: true }, admin: { allowPublic: true } },
  ],
  'the admin port on the nodes': [
    { service: { type: 'NodePort', exposeAdmin: true } },
    'service.exposeAdmin: a Service of type NodePort would show the admin port to the outside',
    { service: { type: 'ClusterIP', exposeAdmin: true } },
  ],
  'the admin port at an Ingress': [
    { service: { exposeAdmin: true }, ingress: { ...INGRESS, hosts: [{ host: 'a', paths: ADMIN_PATH }] } },
    'ingress.hosts: /metrics would show the admin port to the outside; it has no authentication; set admin.allowPublic=true',
    {
      admin: { allowPublic: true },
      service: { exposeAdmin: true },
      ingress: { ...INGRESS, hosts: [{ host: 'a', paths: ADMIN_PATH }] },
    },
  ],
  'the admin port at an Ingress, but not on the Service': [
    { admin: { allowPublic: true }, ingress: { ...INGRESS, hosts: [{ host: 'a', paths: ADMIN_PATH }] } },
    'ingress.hosts: /metrics leads to the admin port, which is not on the Service; set service.exposeAdmin=true',
    { ingress: INGRESS },
  ],
  'the admin port at a Gateway': [
    {
      service: { exposeAdmin: true },
      httpRoute: { enabled: true, parentRefs: [{ name: 'public' }], paths: ADMIN_PATH },
    },
    'httpRoute.paths: /metrics would show the admin port to the outside',
    { httpRoute: { enabled: true, parentRefs: [{ name: 'public' }], paths: [{ path: '/v1' }] } },
  ],
  'one number for both ports of the Service': [
    { service: { port: 9090, exposeAdmin: true } },
    'service.port: is the same as ports.admin, which service.exposeAdmin puts on the Service too; take another one',
    { service: { port: 9090 } },
  ],
  'an Ingress without a host': [
    { ingress: { enabled: true } },
    'ingress.hosts: is empty; name a host',
    { ingress: INGRESS },
  ],
  'a route without a Gateway': [
    { httpRoute: { enabled: true } },
    'httpRoute.parentRefs: is empty; name the Gateway',
    { httpRoute: { enabled: true, parentRefs: [{ name: 'public' }] } },
  ],

  'settings of a load balancer at a Service that is none': [
    { service: { loadBalancerClass: 'example.com/internal', loadBalancerSourceRanges: ['10.0.0.0/8'] } },
    'service.loadBalancerClass: is for service.type LoadBalancer, and it is ClusterIP; set that, or remove this',
    {
      service: {
        type: 'LoadBalancer',
        loadBalancerClass: 'example.com/internal',
        loadBalancerSourceRanges: ['10.0.0.0/8'],
        allocateLoadBalancerNodePorts: false,
      },
    },
  ],
  'a port at nodes that are not listening': [
    { service: { nodePorts: { api: 30080 } } },
    'service.nodePorts.api: is for service.type NodePort or LoadBalancer, and it is ClusterIP',
    { service: { type: 'NodePort', nodePorts: { api: 30080 }, externalTrafficPolicy: 'Local' } },
  ],
  'a port at the nodes for an admin port that is not there': [
    { service: { type: 'NodePort', nodePorts: { admin: 30090 } } },
    'service.nodePorts.admin: the admin port is not on the Service; set service.exposeAdmin=true, or remove this',
    {
      service: { type: 'NodePort', exposeAdmin: true, nodePorts: { api: 30080, admin: 30090 } },
      admin: { allowPublic: true },
    },
  ],
  'one port at the nodes for both ports': [
    {
      service: { type: 'NodePort', exposeAdmin: true, nodePorts: { api: 30080, admin: 30080 } },
      admin: { allowPublic: true },
    },
    'service.nodePorts.admin: is 30080, as service.nodePorts.api is; take another one',
    { service: { type: 'NodePort', nodePorts: { api: 30080 } } },
  ],
  'two families in one': [
    { bindAddress: '::', service: { ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv4', 'IPv6'] } },
    'service.ipFamilies: are two, and service.ipFamilyPolicy SingleStack has room for one; set PreferDualStack',
    { bindAddress: '::', service: { ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv6'] } },
  ],
  'IPv6 to pods that listen on IPv4 only': [
    { service: { ipFamilyPolicy: 'PreferDualStack' } },
    'bindAddress: 0.0.0.0 takes no connections over IPv6, which service.ipFamilyPolicy or service.ipFamilies asks for; set bindAddress="::"',
    { bindAddress: '::', service: { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6', 'IPv4'] } },
  ],

  'a new pod beside the one that has the volume': [
    { store: { file: { persistence: { enabled: true } } }, strategy: { rollingUpdate: { maxSurge: 1 } } },
    'strategy.type: RollingUpdate would start a pod while the one before it still has the volume',
    { store: { file: { persistence: { enabled: true } } }, strategy: { type: 'Recreate' } },
  ],
  'a rollout of what is recreated': [
    { strategy: { type: 'Recreate', rollingUpdate: { maxSurge: 1 } } },
    'strategy.rollingUpdate: is for strategy.type RollingUpdate, and it is Recreate; remove one of them',
    { strategy: { rollingUpdate: { maxSurge: 1 } } },
  ],
  'a rollout that cannot begin': [
    { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: '0%' } } },
    'strategy.rollingUpdate: maxSurge and maxUnavailable are both 0, so that no pod can be replaced',
    { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } },
  ],
  'a pod without a name server': [
    { dnsPolicy: 'None' },
    'dnsPolicy: None leaves the pod without a name server; set dnsConfig.nameservers',
    { dnsPolicy: 'None', dnsConfig: { nameservers: ['10.0.0.10'] } },
  ],
  'two containers of one name': [
    { extraContainers: [{ name: 'holdfast', image: 'agent:1' }] },
    'extraContainers: holdfast is the container of the chart; take another name',
    { extraContainers: [{ name: 'agent', image: 'agent:1' }] },
  ],

  'KEDA without autoscaling': [
    { ...REDIS, autoscaling: { keda: { enabled: true, serverAddress: 'http://prometheus:9090' } } },
    'autoscaling.keda.enabled: is not used; set autoscaling.enabled=true',
    KEDA,
  ],
  'KEDA without Prometheus': [
    { ...AUTOSCALING, autoscaling: { enabled: true, keda: { enabled: true } } },
    'autoscaling.keda.serverAddress: is empty; name Prometheus, like autoscaling.keda.serverAddress=http://prometheus.monitoring:9090',
    KEDA,
  ],
  'KEDA that counts nothing': [
    {
      ...REDIS,
      autoscaling: {
        enabled: true,
        targetActiveRuns: 0,
        keda: { enabled: true, serverAddress: 'http://prometheus:9090' },
      },
    },
    'autoscaling.targetActiveRuns: is 0, and autoscaling.keda scales by it; set the streams of one replica',
    KEDA,
  ],

  'TLS for scrapes without it': [
    {
      metrics: { podMonitor: { enabled: true, tlsConfig: { serverName: 'holdfast' } } },
      networkPolicy: { enabled: false },
    },
    'metrics.podMonitor.tlsConfig: is not used, because metrics.podMonitor.scheme is http; set https',
    {
      metrics: { podMonitor: { enabled: true, scheme: 'https', tlsConfig: { serverName: 'holdfast' } } },
      networkPolicy: { enabled: false },
    },
  ],
  'two monitors': [
    {
      metrics: { podMonitor: { enabled: true }, serviceMonitor: { enabled: true } },
      networkPolicy: { enabled: false },
    },
    'metrics: podMonitor and serviceMonitor are both enabled, so that everything would be counted twice; keep one of them',
    { metrics: { podMonitor: { enabled: true } }, networkPolicy: { enabled: false } },
  ],
  'a monitor that cannot reach the pods': [
    { metrics: { podMonitor: { enabled: true } } },
    'networkPolicy.adminFrom: is empty, so that Prometheus cannot reach what a monitor tells it to scrape',
    { metrics: { podMonitor: { enabled: true } }, networkPolicy: { adminFrom: [{ podSelector: {} }] } },
  ],

  'a sidecar that says how the pod of the application resolves names': [
    { mode: 'sidecar', dnsConfig: { options: [{ name: 'ndots', value: '1' }] } },
    'dnsConfig: is for mode=gateway; the pod belongs to the application, so set it there',
    { mode: 'sidecar' },
  ],
  'an autoscaled sidecar': [
    { ...AUTOSCALING, mode: 'sidecar' },
    'autoscaling.enabled: is for mode=gateway; a sidecar is reached by its own pod only',
    { ...REDIS, mode: 'sidecar' },
  ],
  'a sidecar with an Ingress': [
    { mode: 'sidecar', ingress: INGRESS },
    'ingress.enabled: is for mode=gateway',
    { mode: 'sidecar' },
  ],
  'a sidecar with a route': [
    { mode: 'sidecar', httpRoute: { enabled: true, parentRefs: [{ name: 'public' }] } },
    'httpRoute.enabled: is for mode=gateway',
    { mode: 'sidecar' },
  ],
  'a sidecar with a Service': [
    { mode: 'sidecar', service: { exposeAdmin: true } },
    'service.exposeAdmin: is for mode=gateway',
    { mode: 'sidecar' },
  ],
  'a sidecar with a ServiceMonitor': [
    { mode: 'sidecar', metrics: { serviceMonitor: { enabled: true } } },
    'metrics.serviceMonitor.enabled: is for mode=gateway',
    { mode: 'sidecar', metrics: { podMonitor: { enabled: true } } },
  ],
  'a sidecar with a volume of its own': [
    { mode: 'sidecar', store: { file: { persistence: { enabled: true } } } },
    'store.file.persistence.enabled: is for mode=gateway',
    { mode: 'sidecar' },
  ],
  'a number of sidecars': [
    { ...REDIS, mode: 'sidecar', replicaCount: 3 },
    'replicaCount: is for mode=gateway; the application decides how many pods there are',
    { ...REDIS, mode: 'sidecar' },
  ],
  'a sidecar that brings Valkey': [
    { mode: 'sidecar', secret: SECRET, store: { type: 'valkey' }, valkey: { auth: SECRET } },
    'store.type: valkey is for mode=gateway; sidecars take a Redis or Valkey that is there already, with store.type=redis',
    { ...REDIS, mode: 'sidecar' },
  ],
  'an application of nothing': [
    { mode: 'sidecar', sidecar: { application: { enabled: true } } },
    'sidecar.application.containers: is empty; name the container of the application',
    { mode: 'sidecar', sidecar: { application: { enabled: true, containers: [{ name: 'a', image: 'a' }] } } },
  ],
  'an application beside a gateway': [
    { sidecar: { application: { enabled: true, containers: [{ name: 'a', image: 'a' }] } } },
    'sidecar.application.enabled: is for mode=sidecar; set mode=sidecar',
    {},
  ],
  'injection by a gateway': [
    { sidecar: { injection: { enabled: true } } },
    'sidecar.injection.enabled: is for mode=sidecar; set mode=sidecar',
    { mode: 'sidecar', sidecar: { injection: { enabled: true } } },
  ],
  'a sidecar that drains for longer than its pod has': [
    { mode: 'sidecar', terminationGracePeriodSeconds: 25 },
    'config.limits.drain_ms: 25000 ms do not fit into the 25 s that terminationGracePeriodSeconds=25 leaves after preStop.sleepSeconds=0',
    { mode: 'sidecar', terminationGracePeriodSeconds: 26 },
  ],
};

describe('the chart refuses', () => {
  it.each(Object.entries(CONTRADICTIONS))(
    '%s, and says what to do',
    async (_, [values, message, remedied]) => {
      const [refusal, remedy] = await Promise.all([chart.refusal(values), chart.refusal(remedied)]);
      expect(refusal).toContain(`- ${message}`);
      expect(remedy).toBe('');
    },
  );

  it('values without a provider', async () => {
    await expect(chart.render({})).rejects.toThrow(
      'config.upstreams: no provider is named; add one, like config.upstreams.openai.base_url=https://api.openai.com/v1',
    );
  });

  it('everything at once, so that it can be mended at once', async () => {
    const refusal = await chart.refusal({
      replicaCount: 2,
      ingress: { enabled: true },
      preStop: { sleepSeconds: 50 },
    });
    expect(refusal.match(/^ {2}- /gm)).toHaveLength(3);
  });

  it('a sidecar of a chart that is set up as a gateway', async () => {
    const values = { holdfast: { mode: 'gateway' } };
    await expect(chart.renderApplication(values)).rejects.toThrow(
      'holdfast.sidecar: the mode of the chart holdfast is gateway; set holdfast.mode=sidecar',
    );
  });

  it('the same for a chart that has it as a dependency', async () => {
    const values = { holdfast: { ingress: INGRESS } };
    await expect(chart.renderApplication(values)).rejects.toThrow('ingress.enabled: is for mode=gateway');
  });
});
