// Must come first, because the certificate library needs it.
import '../../../ops/sandbox/kit/reflect.ts';
import * as x509 from '@peculiar/x509';

/** Returns APNs credentials with a certificate that ends at a time (epoch milliseconds). */
export async function certificateUntil(endMs: number) {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    // The UID of the subject is the bundle id.
    name: '0.9.2342.19200300.100.1.1=com.example.app, CN=Apple Push Services: com.example.app',
    notBefore: new Date(endMs - 365 * 86_400_000),
    notAfter: new Date(endMs),
    signingAlgorithm: algorithm,
    keys,
  });
  const privateKey = x509.PemConverter.encode(
    await crypto.subtle.exportKey('pkcs8', keys.privateKey),
    'PRIVATE KEY',
  );
  return {
    auth: 'certificate',
    certificate: certificate.toString('pem'),
    privateKey,
    topic: 'com.example.app',
  };
}
