import { brandOf, installationVendor } from '../../../shared/domain/labels.ts';
import { openCertificateAuthority } from '../kit/certificates.ts';
import type { GatewayInstance, InstanceOptions, SandboxDefinition } from './definition.ts';
import { definitions, deviceTokenOf } from './definitions.ts';
import { createSandboxSecrets, type SandboxSecrets } from './secrets.ts';

/** All gateways of the sandbox, running. */
export interface Sandbox {
  secrets: SandboxSecrets;
  /** In the order of the connectors (`shared/domain/labels.ts`). */
  instances: GatewayInstance[];
  close(): Promise<void>;
}

export interface StartOptions {
  secrets?: SandboxSecrets;
  host?: string;
  /** First of as many consecutive ports as there are gateways; absent: free ports. */
  firstPort?: number;
  /** Number of recent requests that each gateway keeps with their bodies. */
  keptRequests?: number;
  /** `none`: the gateways check nothing (docs/develop/sandbox.md#without-checks). */
  checks?: 'all' | 'none';
}

/** Starts one gateway for each connector; resolves when all listen. */
export async function startGateways(options: StartOptions = {}): Promise<Sandbox> {
  const secrets = options.secrets ?? (await createSandboxSecrets());
  const authority = await openCertificateAuthority(secrets.authority);
  const { checks = 'all', firstPort, host = '127.0.0.1', keptRequests } = options;
  const instances: GatewayInstance[] = [];
  const close = async () => void (await Promise.all(instances.map((instance) => instance.close())));
  try {
    for (const [i, definition] of definitions.entries()) {
      const own: InstanceOptions = {
        authority,
        checks,
        host,
        ...(keptRequests === undefined ? {} : { keptRequests }),
        ...(firstPort === undefined ? {} : { port: firstPort + i }),
      };
      instances.push(await startInstance(definition, secrets.apps.get(definition.connector), own));
    }
    return { secrets, instances, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startInstance(
  definition: SandboxDefinition,
  app: unknown,
  options: InstanceOptions,
): Promise<GatewayInstance> {
  const { connector } = definition;
  return {
    ...(await definition.start(app, options)),
    connector,
    title: brandOf(connector),
    vendor: installationVendor(connector),
    deviceToken: (n) => deviceTokenOf(connector, n),
  };
}
