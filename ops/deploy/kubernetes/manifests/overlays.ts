/** Overlays: sizes, a database, scaling, and monitoring with operators of the cluster. */
import type { ICluster } from '@kubernetes-models/cloudnative-pg/postgresql.cnpg.io/v1';
import type { IScaledObject } from '@kubernetes-models/keda/keda.sh/v1alpha1';
import type { IPodMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
import type { IDeployment } from 'kubernetes-models/apps/v1';
import { consoleIngress } from './base.ts';
import { labelsOf, nameOf, type Part } from './names.ts';

/** Object with some of the members of `T`, as used in a strategic merge patch. */
type Patch<T> = T extends readonly (infer Item)[]
  ? Patch<Item>[]
  : T extends object
    ? { [Key in keyof T]?: Patch<T[Key]> }
    : T;

type DeploymentPatch = Patch<IDeployment> & Pick<IDeployment, 'apiVersion' | 'kind'>;

/** Returns a patch of a part's only container. */
function containerPatch(
  part: Part,
  container: Patch<
    NonNullable<
      NonNullable<NonNullable<IDeployment['spec']>['template']['spec']>['containers'][number]
    >
  >,
): DeploymentPatch {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: nameOf(part) },
    spec: { template: { spec: { containers: [{ name: part, ...container }] } } },
  };
}

const cluster: ICluster = {
  apiVersion: 'postgresql.cnpg.io/v1',
  kind: 'Cluster',
  metadata: { name: 'carillon-db' },
  spec: {
    instances: 3,
    primaryUpdateStrategy: 'unsupervised',
    storage: { size: '100Gi' },
    bootstrap: { initdb: { database: 'carillon', owner: 'carillon' } },
    postgresql: {
      // The overlay `large` with all dispatchers of `keda` opens up to 644 connections.
      parameters: {
        max_connections: '700',
        wal_compression: 'on',
        jit: 'off',
        random_page_cost: '1.1',
      },
    },
    monitoring: { enablePodMonitor: true },
  },
};

/** Address with user and password. CloudNativePG writes it into this secret. */
const ownDatabase = {
  name: 'DATABASE_URL',
  valueFrom: { secretKeyRef: { name: 'carillon-db-app', key: 'uri' } },
};

const scaledDispatcher: IScaledObject = {
  apiVersion: 'keda.sh/v1alpha1',
  kind: 'ScaledObject',
  metadata: { name: nameOf('dispatcher') },
  spec: {
    scaleTargetRef: { name: nameOf('dispatcher') },
    minReplicaCount: 2,
    maxReplicaCount: 12,
    pollingInterval: 10,
    cooldownPeriod: 300,
    triggers: [
      {
        type: 'prometheus',
        metadata: {
          serverAddress: 'http://prometheus-operated.monitoring:9090',
          // Scales by waiting time, not by queue length. Jobs of slow gateways wait even if there
          // are enough dispatchers.
          query: 'max(carillon_queue_oldest_seconds)',
          threshold: '10',
        },
      },
      { type: 'cpu', metricType: 'Utilization', metadata: { value: '80' } },
    ],
  },
};

const monitorOf = (part: Part, port: string): IPodMonitor => ({
  apiVersion: 'monitoring.coreos.com/v1',
  kind: 'PodMonitor',
  metadata: { name: nameOf(part), labels: labelsOf(part) },
  spec: {
    selector: { matchLabels: labelsOf(part) },
    podMetricsEndpoints: [
      {
        port,
        path: '/metrics',
        interval: '15s',
        authorization: { credentials: { name: 'carillon', key: 'METRICS_TOKEN' } },
      },
    ],
  },
});

export interface Overlay {
  /** New objects, by file. */
  resources?: Record<string, object[]>;
  patches?: object[];
  replicas?: { name: string; count: number }[];
}

export const overlays: Record<string, Overlay> = {
  console: { resources: { 'ingress.yaml': [consoleIngress] } },
  small: {
    replicas: [
      { name: nameOf('api'), count: 1 },
      { name: nameOf('dispatcher'), count: 1 },
    ],
    patches: [
      containerPatch('api', { resources: { requests: { cpu: '100m', memory: '128Mi' } } }),
      containerPatch('dispatcher', {
        resources: { requests: { cpu: '100m', memory: '192Mi' } },
        env: [{ name: 'DISPATCHER_THREADS', value: '1' }],
      }),
    ],
  },
  large: {
    replicas: [
      { name: nameOf('api'), count: 4 },
      { name: nameOf('dispatcher'), count: 8 },
    ],
    patches: [
      containerPatch('api', {
        resources: { requests: { cpu: '2', memory: '512Mi' }, limits: { memory: '2Gi' } },
      }),
      containerPatch('dispatcher', {
        resources: { requests: { cpu: '2', memory: '512Mi' }, limits: { memory: '1Gi' } },
        env: [{ name: 'DISPATCHER_THREADS', value: '2' }],
      }),
    ],
  },
  'cloudnative-pg': {
    resources: { 'cluster.yaml': [cluster] },
    patches: [
      containerPatch('api', { env: [ownDatabase] }),
      containerPatch('dispatcher', { env: [ownDatabase] }),
      {
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: { name: nameOf('migrate') },
        spec: { template: { spec: { containers: [{ name: 'migrate', env: [ownDatabase] }] } } },
      },
    ],
  },
  keda: { resources: { 'scaled-dispatcher.yaml': [scaledDispatcher] } },
  'prometheus-operator': {
    resources: {
      'pod-monitors.yaml': [monitorOf('api', 'http'), monitorOf('dispatcher', 'metrics')],
    },
  },
};
