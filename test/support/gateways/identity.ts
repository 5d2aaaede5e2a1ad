import {
  type CertificateAuthority,
  type KeyPairPem,
  openCertificateAuthority,
} from '../../../ops/sandbox/kit/certificates.ts';

/** Certificate and key of a loopback server, and the certificate authority that issued them. */
export interface Identity {
  authority: CertificateAuthority;
  server: KeyPairPem;
}

let identity: Promise<Identity> | undefined;

/**
 * Returns the identity of all servers of a test file. It is shared, because creating one takes
 * longer than most tests.
 */
export function loopbackIdentity(): Promise<Identity> {
  identity ??= make();
  return identity;
}

async function make(): Promise<Identity> {
  const authority = await openCertificateAuthority();
  return { authority, server: await authority.issueServer() };
}
