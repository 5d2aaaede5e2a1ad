/** What the gateways of a sandbox accept: made-up apps, one at each vendor, and the authority of their certificates. */
import { randomBytes, randomInt } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { type ApnsCredentials, createApnsCredentials } from '../apns/server.ts';
import { createServiceAccount, type ServiceAccount } from '../fcm/server.ts';
import { type KeyPairPem, openCertificateAuthority } from '../kit/certificates.ts';
import { createHonorApp, type HonorApp } from '../vendors/honor/server.ts';
import { createHuaweiApp, type HuaweiApp } from '../vendors/huawei/server.ts';
import { createOppoApp } from '../vendors/oppo/server.ts';
import { createVivoApp, type VivoApp } from '../vendors/vivo/server.ts';
import { sandboxConnectors } from './kinds.ts';

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

/** What a file of another version lacks is made anew. */
const kept = z.custom<Partial<SandboxSecrets>>((value) => typeof value === 'object' && value !== null);

/** The secrets in a file, made when there is none; readable by its owner only. */
export async function keepSandboxSecrets(file: string): Promise<SandboxSecrets> {
  const text = await readFile(file, 'utf8').catch(() => '{}');
  const known = kept.parse(JSON.parse(text));
  if (isWhole(known)) return known;
  const whole = { ...(await createSandboxSecrets()), ...known };
  await writeFile(file, JSON.stringify(whole), { mode: 0o600 });
  return whole;
}

const isWhole = (known: Partial<SandboxSecrets>): known is SandboxSecrets =>
  known.authority !== undefined && sandboxConnectors.every((connector) => known[connector] !== undefined);
