import { checkCredentials } from '../../../connectors/registry.ts';
import type { GatewayInstance, TypedDefinition } from '../../../ops/sandbox/all/definition.ts';
import { type Sandbox, type StartOptions, startGateways } from '../../../ops/sandbox/all/start.ts';
import { definition as apns } from '../../../ops/sandbox/apns/index.ts';
import { fcm, vendorG } from '../../../ops/sandbox/fcm/index.ts';
import { definition as honor } from '../../../ops/sandbox/vendors/honor/index.ts';
import { definition as huawei } from '../../../ops/sandbox/vendors/huawei/index.ts';
import { definition as meizu } from '../../../ops/sandbox/vendors/meizu/index.ts';
import { definition as oppo } from '../../../ops/sandbox/vendors/oppo/index.ts';
import { definition as vivo } from '../../../ops/sandbox/vendors/vivo/index.ts';
import { definition as xiaomi } from '../../../ops/sandbox/vendors/xiaomi/index.ts';
import { definition as webPush } from '../../../ops/sandbox/webpush/index.ts';
import { Vault } from '../../../shared/crypto.ts';
import { putProfile } from '../../../shared/db/tables/profiles.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../api.ts';
import type { TestService } from '../service.ts';

/** All sandbox gateways for a service. */
export interface AllVendors extends Sandbox {
  /** Gateways with the vendors' own types. */
  gateways: ReturnType<typeof typedGateways>;
  /** Creates an app with a profile for each given gateway. By default, for all gateways. */
  app(...connectors: string[]): Promise<App>;
  /** Stores a profile. `more` adds members. */
  put(app: App, instance: GatewayInstance, more?: object): Promise<void>;
  /**
   * Inserts devices directly into the table. Returns their tokens. Each call continues with the
   * next numbers.
   */
  add(app: App, connector: string, count: number): Promise<string[]>;
  instance(connector: string): GatewayInstance;
}

export async function startVendors(
  service: TestService,
  options: StartOptions = {},
): Promise<AllVendors> {
  const sandbox = await startGateways(options);
  const vault = new Vault(testConfig(service.databaseUrl).secrets);
  let last = 0;
  const instanceOf = (connector: string): GatewayInstance => {
    const found = sandbox.instances.find((one) => one.connector === connector);
    if (!found) throw new Error(`there is no gateway for ${connector}`);
    return found;
  };
  const put = async (app: App, { connector, credentials }: GatewayInstance, more: object = {}) => {
    const checked = checkCredentials(connector, { ...credentials, ...more });
    if (!checked.ok) throw new Error(checked.error);
    const profile = {
      appId: app.appId,
      connector,
      name: '_default',
      credentials: checked.credentials,
    };
    await putProfile(service.db, vault, profile);
  };
  return {
    ...sandbox,
    gateways: typedGateways(instanceOf),
    instance: instanceOf,
    put,
    async app(...connectors) {
      const app = await service.api.createApp({ hybridPush: true });
      for (const instance of sandbox.instances)
        if (connectors.length === 0 || connectors.includes(instance.connector))
          await put(app, instance);
      return app;
    },
    async add(app, connector, count) {
      const instance = instanceOf(connector);
      const addresses = Array.from({ length: count }, (_, i) => instance.deviceToken(last + i));
      last += count;
      await service.db.query(insertSql(instance), [
        app.appId,
        addresses,
        instance.vendor,
        connector,
      ]);
      return addresses;
    },
  };
}

function typedGateways(instanceOf: (connector: string) => GatewayInstance) {
  const own = <G>({ connector, gatewayAt }: TypedDefinition<G>): G =>
    gatewayAt(instanceOf(connector).url);
  return {
    apns: own(apns),
    fcm: own(fcm),
    huawei: own(huawei),
    xiaomi: own(xiaomi),
    meizu: own(meizu),
    oppo: own(oppo),
    vivo: own(vivo),
    honor: own(honor),
    google: own(vendorG),
    webPush: own(webPush),
  };
}

const insertSql = ({ vendor }: GatewayInstance): string =>
  vendor === null
    ? `INSERT INTO installation (app_id, object_id, device_type, device_token, topic)
       SELECT $1, left(encode(sha256(($1 || $4 || a)::bytea), 'hex'), 24), coalesce($3, 'ios'), a,
         'com.example.app'
         FROM unnest($2::text[]) AS a`
    : `INSERT INTO installation (app_id, object_id, device_type, installation_id, registration_id,
      subscription_keys, vendor, vendor_name)
       SELECT $1, left(encode(sha256(($1 || $4 || a)::bytea), 'hex'), 24),
              CASE $4 WHEN 'webpush' THEN 'web' ELSE 'android' END,
              gen_random_uuid()::text, split_part(a, '#', 1), nullif(split_part(a, '#', 2), ''),
              CASE $4 WHEN 'fcm' THEN 'vendor_g' ELSE $4 END, $3
         FROM unnest($2::text[]) AS a`;
