import { readFile, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { brandOf, type ConnectorId, installationVendor } from '../../../shared/domain/labels.ts';
import { type KeyPairPem, openCertificateAuthority } from '../kit/certificates.ts';
import type { GatewayInstance, InstanceOptions, SandboxDefinition } from './definition.ts';
import { definitions, deviceTokenOf } from './definitions.ts';

/** All running gateways of the sandbox. */
export interface Sandbox {
  secrets: SandboxSecrets;
  /** In the order of the connectors (`shared/domain/labels.ts`). */
  instances: GatewayInstance[];
  close(): Promise<void>;
}

export interface StartOptions {
  secrets?: SandboxSecrets;
  host?: string;
  /**
   * First port. The gateways use consecutive ports from there, and the management server of APNs a
   * port after them. If absent, they use free ports.
   */
  firstPort?: number;
  /** Number of recent requests that each gateway stores with their bodies. */
  keptRequests?: number;
  /** `none`: the gateways check nothing (docs/develop/sandbox.md#without-checks). */
  checks?: 'all' | 'none';
}

/** Starts one gateway per connector. Resolves when all listen. */
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
        ...(firstPort === undefined
          ? {}
          : { port: firstPort + i, managementPort: firstPort + definitions.length + i }),
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

/**
 * Secrets of all gateways: the apps that they accept, and their shared certificate authority. They
 * are stored, so that later starts use the same secrets.
 */
interface SandboxSecrets {
  authority: KeyPairPem;
  /** Credentials of an app by connector, as the vendor's console issues them. */
  apps: ReadonlyMap<ConnectorId, object>;
}

/** Creates a certificate authority and one app for each vendor. */
async function createSandboxSecrets(): Promise<SandboxSecrets> {
  return completed({});
}

/** Stored form: the authority, and each app under its connector id. */
const storedForm = z.looseObject({
  authority: z.object({ certificate: z.string(), privateKey: z.string() }).optional(),
});

/**
 * Reads the secrets from a file and adds missing secrets, for example for a new vendor. Only the
 * owner can read the file.
 */
export async function keepSandboxSecrets(file: string): Promise<SandboxSecrets> {
  const text = await readFile(file, 'utf8').catch(() => '{}');
  const stored = storedForm.parse(JSON.parse(text));
  const isComplete =
    stored.authority !== undefined && definitions.every(({ connector }) => connector in stored);
  const secrets = await completed(stored);
  if (isComplete) return secrets;
  const { apps, authority } = secrets;
  const whole = { authority, ...Object.fromEntries(apps) };
  await writeFile(file, JSON.stringify(whole), { mode: 0o600 });
  return secrets;
}

async function completed(stored: z.infer<typeof storedForm>): Promise<SandboxSecrets> {
  const apps = new Map<ConnectorId, object>();
  for (const { connector, createApp } of definitions) {
    const known = stored[connector];
    const isApp = typeof known === 'object' && known !== null;
    apps.set(connector, isApp ? known : await createApp());
  }
  return { authority: stored.authority ?? (await createAuthority()), apps };
}

async function createAuthority(): Promise<KeyPairPem> {
  const { certificate, privateKey } = await openCertificateAuthority();
  return { certificate, privateKey };
}
