/**
 * Definitions of all gateways of the sandbox: APNs, FCM under both connector ids, Web Push, and each
 * folder of `vendors/`.
 */
import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { z } from 'zod';
import { type ConnectorId, profileConnectorIds } from '../../../shared/domain/labels.ts';
import { moduleUrl } from '../../../shared/process/module-url.ts';
import { definition as apns } from '../apns/index.ts';
import { fcm, vendorG } from '../fcm/index.ts';
import { definition as webPush } from '../webpush/index.ts';
import type { SandboxDefinition } from './definition.ts';

const vendorModule = z.object({
  definition: z.custom<SandboxDefinition>(
    (value) =>
      typeof value === 'object' && value !== null && 'connector' in value && 'start' in value,
  ),
});

async function loadVendors(): Promise<SandboxDefinition[]> {
  const folder = new URL('../vendors/', import.meta.url);
  const names = await readdir(folder);
  return Promise.all(
    names.map(async (name) => {
      const loaded: unknown = await import(
        moduleUrl(`../vendors/${name}/index.ts`, import.meta.url).href
      );
      return vendorModule.parse(loaded).definition;
    }),
  );
}

const byConnector = new Map<ConnectorId, SandboxDefinition>(
  [apns, fcm, vendorG, webPush, ...(await loadVendors())].map((definition) => [
    definition.connector,
    definition,
  ]),
);

/** All definitions, in the order of the connectors (`shared/domain/labels.ts`). */
export const definitions: readonly SandboxDefinition[] = profileConnectorIds.flatMap(
  (id) => byConnector.get(id) ?? [],
);

/** Connectors that have a gateway in the sandbox. */
export const sandboxConnectors: readonly ConnectorId[] = definitions.map(
  ({ connector }) => connector,
);

/** Returns the token of device `n` of a connector, in the vendor's format. */
export function deviceTokenOf(connector: ConnectorId, n: number): string {
  const definition = byConnector.get(connector);
  if (!definition) throw new Error(`the sandbox has no gateway for ${connector}`);
  return definition.deviceToken(createHash('sha256').update(`${connector} ${n}`).digest('hex'));
}
