import { readdir } from 'node:fs/promises';
import { z } from 'zod';
import { apnsFixture } from '../apns/fixture.ts';
import { fcmFixture, vendorGFixture } from '../fcm/fixture.ts';
import { webPushFixture } from '../webpush/fixture.ts';
import type { ContractFixture } from './fixture.ts';

const vendorModule = z.object({
  fixture: z.custom<ContractFixture>(
    (value) =>
      typeof value === 'object' && value !== null && 'connector' in value && 'start' in value,
  ),
});

async function loadVendors(): Promise<ContractFixture[]> {
  const folder = new URL('../vendors/', import.meta.url);
  const entries = await readdir(folder, { withFileTypes: true });
  return Promise.all(
    entries
      .filter((entry) => entry.isDirectory())
      .map(async ({ name }) => {
        const loaded: unknown = await import(new URL(`${name}/fixture.ts`, folder).href);
        return vendorModule.parse(loaded).fixture;
      }),
  );
}

/**
 * Fixtures of all connectors with credentials: `fixture.ts` of every folder in `vendors/`, APNs, FCM
 * and Web Push.
 */
export const fixtures: ContractFixture[] = [
  apnsFixture,
  fcmFixture,
  vendorGFixture,
  webPushFixture,
  ...(await loadVendors()),
];
