import { createRequire } from 'node:module';
import type forge from 'node-forge';
import { CommandFailure } from '../report.ts';

const require = createRequire(import.meta.url);

/** Loads the library with the first file: it takes 3 MB of every command. */
const load = (): typeof forge => require('node-forge');

/** A certificate and its key, both in PEM. */
export interface CertificatePair {
  certificate: string;
  privateKey: string;
}

/**
 * Opens a PKCS#12 file (`.p12`, `.pfx`) with a library, because Keychain Access of macOS still uses RC2 and 3DES, which
 * Node's OpenSSL refuses. Throws `CommandFailure` for a wrong password and for a file without the pair.
 */
export function openPkcs12(content: Buffer, password: string): CertificatePair {
  const { pki } = load();
  const bags = readBags(content, password);
  const keys = [...bagsOf(bags, pki.oids.pkcs8ShroudedKeyBag), ...bagsOf(bags, pki.oids.keyBag)];
  const key = keys.find((bag) => bag.key)?.key;
  const certificates = bagsOf(bags, pki.oids.certBag).flatMap((bag) => bag.cert ?? []);
  const certificate = certificates.find((one) => key !== undefined && isPair(one, key));
  if (!key || !certificate)
    throw new CommandFailure('The .p12 file holds no certificate with its key: export both together.');
  return {
    certificate: pki.certificateToPem(certificate),
    privateKey: pki.privateKeyInfoToPem(pki.wrapRsaPrivateKey(pki.privateKeyToAsn1(key))),
  };
}

function readBags(content: Buffer, password: string): forge.pkcs12.Pkcs12Pfx {
  const { asn1, pkcs12 } = load();
  let file: forge.asn1.Asn1;
  try {
    file = asn1.fromDer(content.toString('binary'));
  } catch {
    throw new CommandFailure('The .p12 file is not a PKCS#12 file.');
  }
  try {
    return pkcs12.pkcs12FromAsn1(file, password);
  } catch {
    throw new CommandFailure('The .p12 file cannot be opened with this password.');
  }
}

const bagsOf = (file: forge.pkcs12.Pkcs12Pfx, bagType: string | undefined): forge.pkcs12.Bag[] =>
  bagType === undefined ? [] : (file.getBags({ bagType })[bagType] ?? []);

function isPair({ publicKey }: forge.pki.Certificate, key: forge.pki.PrivateKey): boolean {
  return 'n' in publicKey && 'n' in key && publicKey.n.equals(key.n);
}
