import { checkCredentials } from '../../../connectors/registry.ts';
import { type Sandbox, type StartOptions, startGateways } from '../../../ops/sandbox/all/gateways.ts';
import type { Stand } from '../../../ops/sandbox/all/stands.ts';
import { Vault } from '../../../shared/crypto.ts';
import { putProfile } from '../../../shared/db/tables/apps/profiles.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../api.ts';
import type { TestService } from '../service.ts';

/** All gateways of the sandbox beside a service. */
export interface AllVendors extends Sandbox {
  /** An app with a profile at each gateway that is asked for, all of them when none is named. */
  app(...connectors: string[]): Promise<App>;
  /** Puts one profile, with members beside those of the stand. */
  put(app: App, stand: Stand, more?: object): Promise<void>;
  /** Writes devices straight into the table; gives their addresses. Numbers go on from call to call. */
  add(app: App, connector: string, count: number): Promise<string[]>;
  stand(connector: string): Stand;
}

export async function startVendors(service: TestService, options: StartOptions = {}): Promise<AllVendors> {
  const sandbox = await startGateways(options);
  const vault = new Vault(testConfig(service.databaseUrl).secrets);
  let last = 0;
  const standOf = (connector: string): Stand => {
    const found = sandbox.stands.find((one) => one.connector === connector);
    if (!found) throw new Error(`there is no gateway for ${connector}`);
    return found;
  };
  const put = async (app: App, { connector, credentials }: Stand, more: object = {}) => {
    const checked = checkCredentials(connector, { ...credentials, ...more });
    if (!checked.ok) throw new Error(checked.error);
    const profile = { appId: app.appId, connector, name: '_default', credentials: checked.credentials };
    await putProfile(service.db, vault, profile);
  };
  return {
    ...sandbox,
    stand: standOf,
    put,
    async app(...connectors) {
      const app = await service.api.createApp({ hybridPush: true });
      for (const stand of sandbox.stands)
        if (connectors.length === 0 || connectors.includes(stand.connector)) await put(app, stand);
      return app;
    },
    async add(app, connector, count) {
      const stand = standOf(connector);
      const addresses = Array.from({ length: count }, (_, i) => stand.address(last + i));
      last += count;
      await service.db.query(insertSql(stand), [app.appId, addresses, stand.vendor, connector]);
      return addresses;
    },
  };
}

const insertSql = ({ vendor }: Stand): string =>
  vendor === null
    ? `INSERT INTO installation (app_id, object_id, device_type, device_token, topic)
       SELECT $1, left(encode(sha256(($1 || $4 || a)::bytea), 'hex'), 24), coalesce($3, 'ios'), a, 'com.example.app'
         FROM unnest($2::text[]) AS a`
    : `INSERT INTO installation (app_id, object_id, device_type, installation_id, registration_id, vendor, vendor_name)
       SELECT $1, left(encode(sha256(($1 || $4 || a)::bytea), 'hex'), 24), 'android', gen_random_uuid()::text, a,
              CASE $4 WHEN 'fcm' THEN 'vendor_g' ELSE $4 END, $3
         FROM unnest($2::text[]) AS a`;
