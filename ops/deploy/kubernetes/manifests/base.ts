/** The base: two apis, two dispatchers, one migration, and the objects that they need. */
import type { IDeployment } from 'kubernetes-models/apps/v1';
import type { IJob } from 'kubernetes-models/batch/v1';
import type { IIngress, INetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import type { IPodDisruptionBudget } from 'kubernetes-models/policy/v1';
import type { IConfigMap, IService } from 'kubernetes-models/v1';
import {
  configName,
  containerOf,
  labelsOf,
  nameOf,
  type Part,
  podOf,
  ports,
  probesOf,
  spreadOf,
} from './names.ts';

const api: IDeployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: nameOf('api'), labels: labelsOf('api') },
  spec: {
    replicas: 2,
    selector: { matchLabels: labelsOf('api') },
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
    template: {
      metadata: { labels: labelsOf('api') },
      spec: podOf(
        containerOf('api', {
          ports: [{ name: 'http', containerPort: ports.api }],
          env: [{ name: 'PORT', value: String(ports.api) }],
          resources: { requests: { cpu: '500m', memory: '256Mi' }, limits: { memory: '768Mi' } },
          // The proxy learns later than the pod that the pod ends. Calls still arrive for some
          // seconds.
          lifecycle: { preStop: { sleep: { seconds: 5 } } },
          ...probesOf('http'),
        }),
        // 5 s before SIGTERM, up to 10 s after it, and a margin.
        { terminationGracePeriodSeconds: 30, topologySpreadConstraints: spreadOf('api') },
      ),
    },
  },
};

const dispatcher: IDeployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: nameOf('dispatcher'), labels: labelsOf('dispatcher') },
  spec: {
    replicas: 2,
    selector: { matchLabels: labelsOf('dispatcher') },
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 1 } },
    template: {
      metadata: { labels: labelsOf('dispatcher') },
      spec: podOf(
        containerOf('dispatcher', {
          ports: [{ name: 'metrics', containerPort: ports.metrics }],
          env: [{ name: 'METRICS_PORT', value: String(ports.metrics) }],
          resources: { requests: { cpu: '1', memory: '384Mi' }, limits: { memory: '768Mi' } },
          ...probesOf('metrics'),
        }),
        { terminationGracePeriodSeconds: 20, topologySpreadConstraints: spreadOf('dispatcher') },
      ),
    },
  },
};

/**
 * Both kinds of process wait for the migration, so the order of creation does not matter. Delete
 * the job before each upgrade, because a job cannot be changed.
 */
const migrate: IJob = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: nameOf('migrate'), labels: labelsOf('migrate') },
  spec: {
    backoffLimit: 10,
    ttlSecondsAfterFinished: 3600,
    template: {
      metadata: { labels: labelsOf('migrate') },
      spec: podOf(
        containerOf('migrate', {
          resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '512Mi' } },
        }),
        { restartPolicy: 'OnFailure' },
      ),
    },
  },
};

const config: IConfigMap = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: configName },
  data: { NODE_ENV: 'production', PUBLIC_URL: 'https://push.example.com', TRUSTED_PROXIES: '1' },
};

const service: IService = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: nameOf('api'), labels: labelsOf('api') },
  spec: { selector: labelsOf('api'), ports: [{ name: 'http', port: 80, targetPort: 'http' }] },
};

/** Paths for clients, devices, gateways and users. Operator paths are not included. */
export const publicPaths = [
  '/1.1',
  '/v1/route',
  '/2/route',
  '/callbacks',
  '/sms-receipts',
  '/openapi.json',
];

/** Returns an ingress for paths of the api. */
const ingressOf = (
  name: string,
  paths: readonly string[],
  annotations: Record<string, string>,
): IIngress => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: {
    name,
    labels: labelsOf('api'),
    // Devices keep a WebSocket open and may be silent for minutes. The console keeps an event
    // stream open.
    annotations: {
      'nginx.ingress.kubernetes.io/proxy-read-timeout': '3600',
      'nginx.ingress.kubernetes.io/proxy-send-timeout': '3600',
      'nginx.ingress.kubernetes.io/proxy-body-size': '20m',
      // The access log would contain whole request lines. A query string may contain a password or
      // a session token.
      'nginx.ingress.kubernetes.io/enable-access-log': 'false',
      ...annotations,
    },
  },
  spec: {
    tls: [{ hosts: ['push.example.com'], secretName: 'carillon-tls' }],
    rules: [
      {
        host: 'push.example.com',
        http: {
          paths: paths.map((path) => ({
            path,
            pathType: 'Prefix',
            backend: { service: { name: nameOf('api'), port: { name: 'http' } } },
          })),
        },
      },
    ],
  },
});

/**
 * Ingress of the console and the admin API for the overlay `console`. It admits only callers from
 * private networks. The annotation works for ingress-nginx only; other controllers have their own
 * annotation.
 */
export const consoleIngress = ingressOf('carillon-console', ['/console'], {
  'nginx.ingress.kubernetes.io/whitelist-source-range': '10.0.0.0/8,172.16.0.0/12,192.168.0.0/16',
});

const budgetOf = (part: Part): IPodDisruptionBudget => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: nameOf(part) },
  spec: { maxUnavailable: 1, selector: { matchLabels: labelsOf(part) } },
});

const tcp = (...list: number[]) => list.map((port) => ({ port, protocol: 'TCP' as const }));

/**
 * All addresses except those of cloud metadata services, which return the credentials of the
 * machine (shared/config/private-hosts.ts). Gateways have no fixed addresses. Pods are listed
 * separately, because some network plugins do not treat pods as addresses.
 */
const anywhere = [
  {
    ipBlock: {
      cidr: '0.0.0.0/0',
      except: ['169.254.0.0/16', '100.100.100.200/32', '168.63.129.16/32', '192.0.0.192/32'],
    },
  },
  { ipBlock: { cidr: '::/0', except: ['fe80::/10', 'fd00:ec2::/32', 'fd20:ce::/32'] } },
  { namespaceSelector: {} },
];

/**
 * Returns a network policy. It allows incoming calls to one port. It allows outgoing connections to
 * DNS, PostgreSQL and the ports in `more`.
 */
const policyOf = (part: Part, served: number[], more: number[]): INetworkPolicy => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: nameOf(part) },
  spec: {
    podSelector: { matchLabels: labelsOf(part) },
    policyTypes: ['Ingress', 'Egress'],
    ingress: served.length === 0 ? [] : [{ ports: tcp(...served) }],
    egress: [
      { ports: [{ port: 53, protocol: 'UDP' }, ...tcp(53)] },
      { ports: tcp(5432, 6432) },
      ...(more.length === 0 ? [] : [{ to: anywhere, ports: tcp(...more) }]),
    ],
  },
});

/** Files of the base by name. */
export const base = {
  'api.yaml': [api, service, budgetOf('api')],
  'dispatcher.yaml': [dispatcher, budgetOf('dispatcher')],
  'migrate.yaml': [migrate],
  'config.yaml': [config],
  'ingress.yaml': [ingressOf(nameOf('api'), publicPaths, {})],
  'network-policy.yaml': [
    // Hosts of cloud functions and hooks, and identity providers.
    policyOf('api', [ports.api], [80, 443]),
    // Gateways use 443, and APNs also 2197. The mail ports are for SMTP.
    policyOf('dispatcher', [ports.metrics], [443, 2197, 25, 465, 587]),
    policyOf('migrate', [], []),
  ],
};
