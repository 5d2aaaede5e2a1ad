/** What the gateways of a sandbox accept: made-up apps, one at each vendor, and the authority of their certificates. */
import { randomBytes, randomInt } from 'node:crypto';
import { type ApnsCredentials, createApnsCredentials } from '../apns/server.ts';
import { type KeyPairPem, openCertificateAuthority } from '../certificates.ts';
import { createServiceAccount, type ServiceAccount } from '../fcm/server.ts';
import { createHonorApp, type HonorApp } from '../honor/server.ts';
import { createHuaweiApp, type HuaweiApp } from '../huawei/server.ts';
import { createOppoApp } from '../oppo/server.ts';
import { createVivoApp, type VivoApp } from '../vivo/server.ts';

/** What gateways accept, so that they can be started again with the same. */
export interface SandboxSecrets {
  authority: KeyPairPem;
  apns: ApnsCredentials;
  fcm: ServiceAccount;
  vendor_g: ServiceAccount;
  vendor_a: HuaweiApp;
  vendor_b: { appId: string; appSecret: string; packageName: string };
  vendor_c: { appId: string; appSecret: string; receiptToken: string };
  vendor_d: { appKey: string; masterSecret: string };
  vendor_e: VivoApp;
  vendor_f: HonorApp;
}

/** Made-up apps, one at each vendor. */
export async function createSandboxSecrets(): Promise<SandboxSecrets> {
  const { certificate, privateKey } = await openCertificateAuthority();
  return {
    authority: { certificate, privateKey },
    apns: createApnsCredentials(),
    fcm: createServiceAccount(),
    vendor_g: createServiceAccount('carillon-sandbox-g'),
    vendor_a: createHuaweiApp(),
    vendor_b: { appId: digits(), appSecret: text(), packageName: 'com.example.app' },
    vendor_c: { appId: digits(), appSecret: text(), receiptToken: text() },
    vendor_d: createOppoApp(),
    vendor_e: createVivoApp(),
    vendor_f: createHonorApp(),
  };
}

const text = (): string => randomBytes(16).toString('hex');
const digits = (): string => String(randomInt(100_000_000, 1_000_000_000));
