/** The gateways of a sandbox, all alike: what they saw, and the credentials of a profile that sends to each. */
import { createHash } from 'node:crypto';
import type { JsonObject } from '../../../shared/domain/json.ts';
import type { ConnectorId } from '../../../shared/domain/labels.ts';
import type { ApnsGateway } from '../apns/server.ts';
import type { FcmGateway } from '../fcm/server.ts';
import type { HonorGateway } from '../honor/server.ts';
import type { SandboxGateway } from '../http/server.ts';
import type { HuaweiGateway } from '../huawei/server.ts';
import type { MeizuGateway } from '../meizu/server.ts';
import type { OppoGateway } from '../oppo/server.ts';
import type { XiaomiGateway } from '../xiaomi/server.ts';
import type { SandboxSecrets } from './secrets.ts';

/** A gateway as whoever looks after all of them sees it. */
export interface Stand {
  connector: ConnectorId;
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
  honor: HonorGateway;
  /** FCM under its second label. */
  google: FcmGateway;
}
/** What differs between the stands. */
interface Description {
  connector: ConnectorId;
  title: string;
  vendor: string | null;
  credentials: JsonObject;
  address(hash: string, n: number): string;
}

/** The stands in the order of the contract. */
export function standsOf(secrets: SandboxSecrets, gateways: Gateways): Stand[] {
  const { vendor_a: huawei, vendor_b, vendor_c, vendor_d, vendor_f, fcm, vendor_g } = secrets;
  const { publicKey: _, ...apns } = secrets.apns;
  const { publicKey: __, ...ofHuawei } = huawei;
  const ofGoogle = (hash: string) => `fcm${hash.slice(0, 19)}:APA91b${hash}${hash}`;
  return [
    apnsStand(gateways.apns, {
      connector: 'apns',
      title: 'APNs',
      vendor: null,
      credentials: { auth: 'token', ...apns },
      address: (hash) => hash,
    }),
    stand(gateways.fcm, {
      connector: 'fcm',
      title: 'FCM',
      vendor: 'fcm',
      credentials: { serviceAccount: { ...fcm } },
      address: ofGoogle,
    }),
    stand(gateways.huawei, {
      connector: 'vendor_a',
      title: 'Huawei',
      vendor: 'HMS',
      credentials: ofHuawei,
      address: (hash) => `IQAAAACy${hash}`,
    }),
    stand(gateways.xiaomi, {
      connector: 'vendor_b',
      title: 'Xiaomi',
      vendor: 'mi',
      credentials: vendor_b,
      // With the characters that a form must escape.
      address: (hash) => `+/${Buffer.from(hash, 'hex').toString('base64')}`,
    }),
    stand(gateways.meizu, {
      connector: 'vendor_c',
      title: 'Meizu',
      vendor: 'mz',
      credentials: vendor_c,
      address: (hash) => `RA5${hash.slice(0, 44)}`,
    }),
    stand(gateways.oppo, {
      connector: 'vendor_d',
      title: 'OPPO',
      vendor: 'oppo',
      credentials: vendor_d,
      address: (hash) => `CN_${hash.slice(0, 32)}`,
    }),
    stand(gateways.honor, {
      connector: 'vendor_f',
      title: 'Honor',
      vendor: 'honor',
      credentials: { ...vendor_f },
      address: (hash) => `BAEBQ${hash.slice(0, 40)}`,
    }),
    stand(gateways.google, {
      connector: 'vendor_g',
      title: 'FCM (vendor_g)',
      vendor: 'vendor_g',
      credentials: { serviceAccount: { ...vendor_g } },
      address: ofGoogle,
    }),
  ];
}

/** The originals allow less, and connectors keep to that unless told otherwise; nobody here needs to be spared. */
const ratePerSecond = 1_000_000;

const hashOf = (connector: string, n: number): string =>
  createHash('sha256').update(`${connector} ${n}`).digest('hex');

function stand(gateway: SandboxGateway, { address, credentials, ...rest }: Description): Stand {
  const { ca, url } = gateway;
  return {
    ...rest,
    url,
    credentials: { ...credentials, endpoint: url, authEndpoint: url, ca, ratePerSecond },
    address: (n) => address(hashOf(rest.connector, n), n),
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

function apnsStand(gateway: ApnsGateway, { address, credentials, ...rest }: Description): Stand {
  const { ca, url } = gateway;
  return {
    ...rest,
    url,
    credentials: { ...credentials, endpoint: url, ca },
    address: (n) => address(hashOf(rest.connector, n), n),
    seen: (one) => gateway.seen(one),
    summary: () => ({
      requests: gateway.total,
      accepted: gateway.accepted,
      devices: gateway.distinct,
      violations: gateway.protocolErrors.length,
    }),
    requests: () =>
      gateway.requests.map(({ body, headers, status }) => ({
        path: String(headers[':path'] ?? ''),
        status,
        devices: 1,
        body,
      })),
    violations: () => gateway.protocolErrors,
  };
}
