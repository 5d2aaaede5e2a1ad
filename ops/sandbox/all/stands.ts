/** The gateways of a sandbox, all alike: what they saw, and the credentials of a profile that sends to each. */
import type { JsonObject } from '../../../shared/domain/json.ts';
import type { ApnsGateway } from '../apns/server.ts';
import type { FcmGateway } from '../fcm/server.ts';
import type { SandboxGateway } from '../http/server.ts';
import type { HonorGateway } from '../vendors/honor/server.ts';
import type { HuaweiGateway } from '../vendors/huawei/server.ts';
import type { MeizuGateway } from '../vendors/meizu/server.ts';
import type { OppoGateway } from '../vendors/oppo/server.ts';
import type { VivoGateway } from '../vendors/vivo/server.ts';
import type { XiaomiGateway } from '../vendors/xiaomi/server.ts';
import { addressOf, kinds, type SandboxConnector } from './kinds.ts';
import type { SandboxSecrets } from './secrets.ts';

/** A gateway as whoever looks after all of them sees it. */
export interface Stand {
  connector: SandboxConnector;
  title: string;
  /** `vendor` of its installations; null where they are told by their device type. */
  vendor: string | null;
  url: string;
  /** Body of `PUT /console/api/apps/:appId/profiles/:connector/:name`. */
  credentials: JsonObject;
  /** Address of device number `n`, in the form the original gives them out. */
  address(n: number): string;
  /** How often a device was named in a request. */
  seen(address: string): number;
  summary(): StandSummary;
  /** The last requests, oldest first. */
  requests(): StandRequest[];
  violations(): readonly string[];
}

export interface StandSummary {
  requests: number;
  accepted: number;
  devices: number;
  violations: number;
}

/** One request as it is shown. */
export interface StandRequest {
  path: string;
  status: number;
  devices: number;
  body: Buffer;
}
/** The gateways as their vendors' tests know them. */
export interface Gateways {
  apns: ApnsGateway;
  fcm: FcmGateway;
  huawei: HuaweiGateway;
  xiaomi: XiaomiGateway;
  meizu: MeizuGateway;
  oppo: OppoGateway;
  vivo: VivoGateway;
  honor: HonorGateway;
  /** FCM under its second label. */
  google: FcmGateway;
}
/** The stands in the order of protocol/admin-api.md#credentials-of-a-push-profile. */
export function standsOf(secrets: SandboxSecrets, gateways: Gateways): Stand[] {
  const { fcm, vendor_a, vendor_b, vendor_c, vendor_d, vendor_e, vendor_f, vendor_g } = secrets;
  const { publicKey: _, ...apns } = secrets.apns;
  const { publicKey: __, ...huawei } = vendor_a;
  return [
    apnsStand(gateways.apns, { auth: 'token', ...apns }),
    stand('fcm', gateways.fcm, { serviceAccount: { ...fcm } }),
    stand('vendor_a', gateways.huawei, huawei),
    stand('vendor_b', gateways.xiaomi, vendor_b),
    stand('vendor_c', gateways.meizu, vendor_c),
    stand('vendor_d', gateways.oppo, vendor_d),
    stand('vendor_e', gateways.vivo, { ...vendor_e }),
    stand('vendor_f', gateways.honor, { ...vendor_f }),
    stand('vendor_g', gateways.google, { serviceAccount: { ...vendor_g } }),
  ];
}

/** The originals allow less, and connectors keep to that unless told otherwise; nobody here needs to be spared. */
const ratePerSecond = 1_000_000;

function stand(connector: SandboxConnector, gateway: SandboxGateway, credentials: JsonObject): Stand {
  const { ca, url } = gateway;
  return {
    ...identityOf(connector),
    url,
    credentials: { ...credentials, endpoint: url, authEndpoint: url, ca, ratePerSecond },
    seen: (one) => gateway.seen(one),
    summary: () => ({
      requests: gateway.total,
      accepted: gateway.accepted,
      devices: gateway.distinct,
      violations: gateway.violations.length,
    }),
    requests: () =>
      gateway.requests.map(({ body, path, status, tokens }) => ({
        path,
        status,
        devices: tokens.length,
        body,
      })),
    violations: () => gateway.violations,
  };
}

function apnsStand(gateway: ApnsGateway, credentials: JsonObject): Stand {
  const { ca, url } = gateway;
  return {
    ...identityOf('apns'),
    url,
    credentials: { ...credentials, endpoint: url, ca },
    seen: (one) => gateway.seen(one),
    summary: () => ({
      requests: gateway.total,
      accepted: gateway.accepted,
      devices: gateway.distinct,
      violations: gateway.protocolErrors.length,
    }),
    requests: () =>
      gateway.requests.map(({ body, status, token }) => ({
        path: `/3/device/${token}`,
        status,
        devices: 1,
        body,
      })),
    violations: () => gateway.protocolErrors,
  };
}

const identityOf = (connector: SandboxConnector) => ({
  connector,
  title: kinds[connector].title,
  vendor: kinds[connector].vendor,
  address: (n: number) => addressOf(connector, n),
});
