/** Apps that the gateways of a sandbox accept, and the certificate authority that they share. */
import { readFile, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import type { ConnectorId } from '../../../shared/domain/labels.ts';
import { type KeyPairPem, openCertificateAuthority } from '../kit/certificates.ts';
import { definitions } from './definitions.ts';

/** Secrets of all gateways, so that they can start again with the same ones. */
export interface SandboxSecrets {
  authority: KeyPairPem;
  /** Credentials of an app, as the vendor's console issues them, by connector. */
  apps: ReadonlyMap<ConnectorId, object>;
}

/** Creates a certificate authority and one app for each vendor. */
export async function createSandboxSecrets(): Promise<SandboxSecrets> {
  return completed({});
}

/** Stored form: the authority, and each app under the id of its connector. */
const storedForm = z.looseObject({
  authority: z.object({ certificate: z.string(), privateKey: z.string() }).optional(),
});

/**
 * Reads the secrets from a file and adds missing ones, such as those of a new vendor; only the
 * owner can read the file.
 */
export async function keepSandboxSecrets(file: string): Promise<SandboxSecrets> {
  const text = await readFile(file, 'utf8').catch(() => '{}');
  const stored = storedForm.parse(JSON.parse(text));
  const isComplete =
    stored.authority !== undefined && definitions.every(({ connector }) => connector in stored);
  const secrets = await completed(stored);
  if (isComplete) return secrets;
  const { apps, authority } = secrets;
  const whole = { authority, ...Object.fromEntries(apps) };
  await writeFile(file, JSON.stringify(whole), { mode: 0o600 });
  return secrets;
}

async function completed(stored: z.infer<typeof storedForm>): Promise<SandboxSecrets> {
  const apps = new Map<ConnectorId, object>();
  for (const { connector, createApp } of definitions) {
    const known = stored[connector];
    const isApp = typeof known === 'object' && known !== null;
    apps.set(connector, isApp ? known : await createApp());
  }
  return { authority: stored.authority ?? (await createAuthority()), apps };
}

async function createAuthority(): Promise<KeyPairPem> {
  const { certificate, privateKey } = await openCertificateAuthority();
  return { certificate, privateKey };
}
