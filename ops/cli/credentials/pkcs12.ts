import { createRequire } from 'node:module';
import type forge from 'node-forge';
import { say } from '../language.ts';
import { CommandFailure } from '../report.ts';

const require = createRequire(import.meta.url);

/**
 * Loads node-forge when the first file is opened, so that other commands do not spend memory on it.
 */
const load = (): typeof forge => require('node-forge');

/** All certificates of a file as one PEM text, and all keys as another. */
export interface Pkcs12Content {
  certificate: string;
  privateKey: string;
}

/**
 * Opens a PKCS#12 file (`.p12`, `.pfx`). Uses node-forge, because Keychain Access of macOS encrypts
 * with RC2 and 3DES, which Node's OpenSSL refuses. Throws `CommandFailure` if the password is wrong
 * or if the file contains no certificate or no key.
 */
export function openPkcs12(content: Buffer, password: string): Pkcs12Content {
  const { pki } = load();
  const bags = readBags(content, password);
  const keys = [
    ...bagsOf(bags, pki.oids.pkcs8ShroudedKeyBag),
    ...bagsOf(bags, pki.oids.keyBag),
  ].flatMap(keyIn);
  const certificates = bagsOf(bags, pki.oids.certBag).flatMap(certificateIn);
  if (keys.length === 0 || certificates.length === 0)
    throw new CommandFailure(
      say('The .p12 file holds no certificate with its key: export both together.'),
    );
  return { certificate: certificates.join(''), privateKey: keys.join('') };
}

function readBags(content: Buffer, password: string): forge.pkcs12.Pkcs12Pfx {
  const { asn1, pkcs12 } = load();
  let file: forge.asn1.Asn1;
  try {
    file = asn1.fromDer(content.toString('binary'));
  } catch {
    throw new CommandFailure(say('The .p12 file is not a PKCS#12 file.'));
  }
  try {
    return pkcs12.pkcs12FromAsn1(file, password);
  } catch {
    throw new CommandFailure(say('The .p12 file cannot be opened with this password.'));
  }
}

const bagsOf = (file: forge.pkcs12.Pkcs12Pfx, bagType: string | undefined): forge.pkcs12.Bag[] =>
  bagType === undefined ? [] : (file.getBags({ bagType })[bagType] ?? []);

/**
 * Returns the key of a bag as PEM. node-forge parses only RSA keys; other keys are available as
 * ASN.1.
 */
function keyIn({ asn1, key }: forge.pkcs12.Bag): string[] {
  const { pki } = load();
  if (key) return [pki.privateKeyInfoToPem(pki.wrapRsaPrivateKey(pki.privateKeyToAsn1(key)))];
  return asn1 ? [pemOf('PRIVATE KEY', asn1)] : [];
}

function certificateIn({ asn1, cert }: forge.pkcs12.Bag): string[] {
  if (cert) return [load().pki.certificateToPem(cert)];
  return asn1 ? [pemOf('CERTIFICATE', asn1)] : [];
}

function pemOf(type: string, element: forge.asn1.Asn1): string {
  const { asn1, pem } = load();
  return pem.encode({ type, body: asn1.toDer(element).getBytes() });
}
