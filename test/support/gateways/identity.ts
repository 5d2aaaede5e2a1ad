import {
  type CertificateAuthority,
  type KeyPairPem,
  openCertificateAuthority,
} from '../../../ops/sandbox/kit/certificates.ts';

/** Who a server on loopback is, and who vouches for it. */
export interface Identity {
  authority: CertificateAuthority;
  server: KeyPairPem;
}

let identity: Promise<Identity> | undefined;

/** One for all servers of a test file: to make it, and to trust it, takes longer than most tests do. */
export function loopbackIdentity(): Promise<Identity> {
  identity ??= make();
  return identity;
}

async function make(): Promise<Identity> {
  const authority = await openCertificateAuthority();
  return { authority, server: await authority.issueServer() };
}
