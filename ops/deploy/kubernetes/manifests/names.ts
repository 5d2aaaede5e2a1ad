/** Names, ports and parts that several manifests use. */
import type { IContainer, IPodSpec, IProbe } from 'kubernetes-models/v1';

export const image = 'carillon';
/** Name of the secret with DATABASE_URL, CARILLON_SECRET and CARILLON_ADMIN_TOKEN. */
export const secretName = 'carillon';
/** Name of the config map with the other variables. */
export const configName = 'carillon';
export const ports = { api: 8080, metrics: 9464 } as const;

export type Part = 'api' | 'dispatcher' | 'migrate';

export const nameOf = (part: Part): string => `carillon-${part}`;

export const labelsOf = (part: Part): Record<string, string> => ({
  'app.kubernetes.io/name': 'carillon',
  'app.kubernetes.io/component': part,
});

/**
 * Returns the settings of a container: without privileges and with a read-only root file system.
 */
export function containerOf(part: Part, more: Partial<IContainer>): IContainer {
  return {
    name: part,
    image,
    args: [part],
    envFrom: [{ configMapRef: { name: configName } }, { secretRef: { name: secretName } }],
    volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    ...more,
  };
}

/** Returns a pod with one container. */
export function podOf(container: IContainer, more: Partial<IPodSpec> = {}): IPodSpec {
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 65532,
      runAsGroup: 65532,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [container],
    volumes: [{ name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '64Mi' } }],
    ...more,
  };
}

/**
 * Returns the probes of a process whose health endpoints are on a port
 * (docs/reference/protocol/operation.md, section Health).
 */
export function probesOf(port: string): {
  startupProbe: IProbe;
  livenessProbe: IProbe;
  readinessProbe: IProbe;
} {
  const get = (path: string) => ({ httpGet: { path, port } });
  return {
    // While a process waits for a migration, it is alive but not ready.
    startupProbe: { ...get('/healthz'), periodSeconds: 1, failureThreshold: 60 },
    livenessProbe: {
      ...get('/healthz'),
      periodSeconds: 10,
      timeoutSeconds: 5,
      failureThreshold: 3,
    },
    readinessProbe: { ...get('/readyz'), periodSeconds: 2, timeoutSeconds: 2, failureThreshold: 2 },
  };
}

/** Returns the constraints that spread the pods of a part over zones and nodes. */
export const spreadOf = (part: Part): NonNullable<IPodSpec['topologySpreadConstraints']> =>
  ['topology.kubernetes.io/zone', 'kubernetes.io/hostname'].map((topologyKey) => ({
    maxSkew: 1,
    topologyKey,
    whenUnsatisfiable: 'ScheduleAnyway',
    labelSelector: { matchLabels: labelsOf(part) },
  }));
