import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll } from 'vitest';
import type { SandboxGateway } from '../../../ops/sandbox/http/server.ts';
import { Vault } from '../../../shared/crypto.ts';
import { putProfile } from '../../../shared/db/tables/profiles.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { type ConnectorId, canonicalVendor } from '../../../shared/domain/labels.ts';
import { testConfig } from '../api.ts';
import { startTestService, type TestService } from '../service.ts';
import { insertDevices, readDevices } from '../tables.ts';
import { beginPush } from './app-gateway.ts';

/** Gateway of a vendor, with the profile credentials except the URL. */
export interface VendorGateway {
  connector: ConnectorId;
  gateway: SandboxGateway;
  credentials: object;
}

/** Service with a dispatcher and several vendor gateways. */
export interface VendorService {
  readonly service: TestService;
  /** Creates an app with a profile for each gateway. `more` overrides members by connector. */
  app(more?: Partial<Record<ConnectorId, object>>): Promise<App>;
  /**
   * Inserts devices of a vendor (any of its names) directly into the table. Returns their tokens.
   */
  add(app: App, vendor: string, addresses: string[]): Promise<string[]>;
  /** Sends a push and returns its record when it is done. `more` adds members to the call. */
  push(app: App, data: object, more?: object): Promise<Record<string, unknown>>;
  /** Returns the tokens of the app's remaining devices. */
  left(app: App): Promise<string[]>;
}

/**
 * Starts one service, dispatcher and set of gateways for a test file. After each test the gateways
 * behave as by default.
 */
export function useVendorService(start: () => Promise<VendorGateway[]>): VendorService {
  let service: TestService;
  let vendors: VendorGateway[] = [];
  beforeAll(async () => {
    service = await startTestService();
    vendors = await start();
    await service.dispatch();
  });
  afterAll(async () => {
    await service?.close();
    await Promise.all(vendors.map(({ gateway }) => gateway.close()));
  });
  afterEach(() => {
    for (const { gateway } of vendors) {
      gateway.behave();
      gateway.forget();
      gateway.deadTokens.clear();
    }
  });
  return {
    get service() {
      return service;
    },
    async app(more = {}) {
      const app = await service.api.createApp({ hybridPush: true });
      const vault = new Vault(testConfig(service.databaseUrl).secrets);
      for (const { connector, gateway, credentials } of vendors) {
        const { url, ca } = gateway;
        const own = { ...credentials, endpoint: url, ca, ...more[connector] };
        await putProfile(service.db, vault, {
          appId: app.appId,
          connector,
          name: '_default',
          credentials: own,
        });
      }
      return app;
    },
    async add(app, vendor, addresses) {
      await insertDevices(
        service.db,
        app,
        addresses.map((registrationId) => ({
          deviceType: 'android',
          installationId: randomUUID(),
          registrationId,
          vendor: canonicalVendor(vendor),
          vendorName: vendor,
        })),
      );
      return addresses;
    },
    push: async (app, data, more = {}) =>
      service.untilDone(app, await beginPush(service, app, { data, ...more })),
    async left(app) {
      const devices = await readDevices(service.db, app);
      return devices.map(({ registrationId }) => registrationId ?? '');
    },
  };
}

/** Returns the tokens with the numbers `from` to `from + count - 1`. */
export const some = (address: (n: number) => string, count: number, from = 0): string[] =>
  Array.from({ length: count }, (_, i) => address(from + i));
