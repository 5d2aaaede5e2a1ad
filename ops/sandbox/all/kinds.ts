/** The devices that each gateway of the sandbox serves: what they are called, and addresses as the originals give them out. */
import { createHash } from 'node:crypto';
import { brandOf, type ConnectorId } from '../../../shared/domain/labels.ts';

interface Kind {
  title: string;
  /** `vendor` of an installation, in its wire name; null: told by the device type. */
  vendor: string | null;
  /** An address made of 64 hexadecimal digits that differ from device to device. */
  address(hash: string): string;
}

const ofGoogle = (hash: string): string => `fcm${hash.slice(0, 19)}:APA91b${hash}${hash}`;

/** In the order of protocol/admin-api.md#credentials-of-a-push-profile. */
export const kinds = {
  apns: { title: brandOf('apns'), vendor: null, address: (hash) => hash },
  fcm: { title: brandOf('fcm'), vendor: 'fcm', address: ofGoogle },
  vendor_a: { title: brandOf('vendor_a'), vendor: 'HMS', address: (hash) => `IQAAAACy${hash}` },
  vendor_b: {
    title: brandOf('vendor_b'),
    vendor: 'mi',
    // With the characters that a form must escape.
    address: (hash) => `+/${Buffer.from(hash, 'hex').toString('base64')}`,
  },
  vendor_c: { title: brandOf('vendor_c'), vendor: 'mz', address: (hash) => `RA5${hash.slice(0, 44)}` },
  vendor_d: { title: brandOf('vendor_d'), vendor: 'oppo', address: (hash) => `CN_${hash.slice(0, 32)}` },
  // Digits: regIds are long numbers.
  vendor_e: {
    title: brandOf('vendor_e'),
    vendor: 'vivo',
    address: (hash) =>
      BigInt(`0x1${hash.slice(0, 18)}`)
        .toString()
        .padStart(23, '1'),
  },
  vendor_f: { title: brandOf('vendor_f'), vendor: 'honor', address: (hash) => `BAEBQ${hash.slice(0, 40)}` },
  vendor_g: { title: brandOf('vendor_g'), vendor: 'vendor_g', address: ofGoogle },
} satisfies Partial<Record<ConnectorId, Kind>>;

export type SandboxConnector = keyof typeof kinds;

/** All of them, in the order of protocol/admin-api.md#credentials-of-a-push-profile. */
export const sandboxConnectors = Object.keys(kinds).filter((id): id is SandboxConnector => id in kinds);

/** Address of device number `n`. */
export function addressOf(connector: SandboxConnector, n: number): string {
  return kinds[connector].address(createHash('sha256').update(`${connector} ${n}`).digest('hex'));
}
